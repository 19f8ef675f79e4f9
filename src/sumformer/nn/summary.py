"""Σ as a value of its own: a mergeable summary of a multiset of tokens.

Σ(A ⊎ B) = Σ(A) + Σ(B), so windows, deletion, sharding and streaming are sums and differences of summaries.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sumformer.errors import InputError, ShapeError
from sumformer.kernels.availability import runs_on
from sumformer.kernels.calling import transformed
from sumformer.kernels.layout import accumulation_dtype
from sumformer.kernels.prefix_sum import prefixes
from sumformer.nn.inputs import zero_padding
from sumformer.nn.segments import Segments


@dataclass(frozen=True)
class Summary:
    """`total` = Σ_k w_k φ(x_k), of shape (batch, d'), and `count` = Σ_k w_k, of shape (batch,).

    Or one summary per token, of what that token sees: (batch, n, d') and (batch, n).
    """

    total: Tensor
    count: Tensor

    def __add__(self, other: Summary) -> Summary:
        self._check(other)
        return Summary(self.total + other.total, self.count + other.count)

    def __radd__(self, start: int) -> Summary:
        """So that Python's sum(summaries), which begins with 0, merges them."""
        return self if start == 0 else NotImplemented

    def __sub__(self, other: Summary) -> Summary:
        self._check(other)
        return Summary(self.total - other.total, self.count - other.count)

    def last(self) -> Summary:
        """What the last token sees, of one summary per token, copied: the others are set free."""
        return Summary(self.total[:, -1].clone(), self.count[:, -1].clone())

    def mean(self) -> Tensor:
        """total / count, and 0 for an empty multiset."""
        count = self.count.unsqueeze(-1)
        return torch.where(count == 0, torch.zeros_like(self.total), self.total / torch.where(count == 0, 1, count))

    def _check(self, other: Summary) -> None:
        if not isinstance(other, Summary):
            raise InputError(f"Summary: expected another summary to add or take away, got {type(other).__name__}")
        if self.total.shape[-1] != other.total.shape[-1]:
            raise ShapeError("Summary", f"a summary of latent dimension {self.total.shape[-1]}", other.total.shape)


def prefix_summaries(features: Tensor, start: Summary | None = None) -> Summary:
    """features (batch, n, d')  →  for each token i the summary of `start` and tokens 1 … i."""
    dtype = accumulation_dtype(features.dtype)
    count = torch.arange(1, features.shape[1] + 1, dtype=dtype, device=features.device).expand(features.shape[:2])
    found = Summary(_prefix_sums(features, dtype), count)
    return found if start is None else Summary(start.total.unsqueeze(1), start.count.unsqueeze(1)) + found


def _prefix_sums(features: Tensor, dtype: torch.dtype) -> Tensor:
    if runs_on(features) and features.dtype != torch.float64 and not transformed():
        return prefixes(features, False)
    return features.cumsum(dim=1, dtype=dtype)


def segment_summaries(features: Tensor, segments: Segments) -> Summary:
    """features (1, total, d')  →  the summaries (N, d') of the N sequences."""
    dtype = accumulation_dtype(features.dtype)
    return Summary(segments.sums(features).to(dtype), segments.lengths.to(dtype))


def summarise(features: Tensor, weights: Tensor | None, keep: Tensor | None) -> Summary:
    """features (batch, n, d')  →  Σ_k w_k φ_k over kept tokens, accumulated in float32 or wider."""
    dtype = accumulation_dtype(features.dtype)
    batch, n = features.shape[:2]
    if weights is not None and weights.shape != features.shape[:2]:
        raise ShapeError("summarise", f"weights of shape (batch, n) = {(batch, n)}", weights.shape)
    features = zero_padding(features, keep)
    if weights is None:
        count = torch.full((batch,), n, dtype=dtype, device=features.device)
        return Summary(features.sum(dim=1, dtype=dtype), count if keep is None else keep.sum(dim=1, dtype=dtype))
    w = zero_padding(weights.to(dtype).unsqueeze(-1), keep)
    # A product and a sum, not a matrix product: autocast would run that one in half precision.
    return Summary((w * features.to(dtype)).sum(dim=1), w.sum(dim=(1, 2)))
