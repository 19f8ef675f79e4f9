"""PooledHead(X) = W pool(x_1, …, x_n) + b, pool the mean, sum or maximum: one output per set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from sumformer.errors import InputError
from sumformer.kernels.layout import accumulation_dtype
from sumformer.nn.average_attention import mean_of_kept
from sumformer.nn.inputs import check_tokens, keep_from_key_padding_mask, with_dtypes_named, zero_padding
from sumformer.nn.layer import check_positive
from sumformer.nn.pretrained import PretrainedModule
from sumformer.nn.segments import Segments, segments_of
from sumformer.nn.sequence_map import refuse_causal_pooling, refuse_pooled_stream

Pool = Callable[[Tensor, Tensor | None], Tensor]
PackedPool = Callable[[Tensor, Segments], Tensor]


def _sum(x: Tensor, keep: Tensor | None) -> Tensor:
    return x.sum(1, dtype=accumulation_dtype(x.dtype)).to(x.dtype)


def _max(x: Tensor, keep: Tensor | None) -> Tensor:
    return (x if keep is None else torch.where(keep.unsqueeze(-1), x, torch.finfo(x.dtype).min)).amax(1)


def _packed_mean(x: Tensor, segments: Segments) -> Tensor:
    return (segments.sums(x) / segments.lengths.clamp(min=1).unsqueeze(-1)).to(x.dtype)


def _packed_sum(x: Tensor, segments: Segments) -> Tensor:
    return segments.sums(x).to(x.dtype)


def _packed_max(x: Tensor, segments: Segments) -> Tensor:
    return segments.maxima(x)


_POOLS: dict[str, tuple[Pool, PackedPool]] = {
    "mean": (mean_of_kept, _packed_mean),
    "sum": (_sum, _packed_sum),
    "max": (_max, _packed_max),
}


class PooledHead(PretrainedModule):
    """(batch, n, d_model) → (batch, d_out). An empty (all-padding) set gives zeros.

    A pack (1, total, d_model) with `cu_seqlens` gives one row per sequence, (N, d_out). There is no causal order.
    """

    def __init__(self, d_model: int, d_out: int, pool: str = "mean") -> None:
        super().__init__()
        check_positive("PooledHead", d_model=d_model, d_out=d_out)
        if pool not in _POOLS:
            raise InputError(f"PooledHead: expected pool to be one of {', '.join(_POOLS)}, got {pool!r}")
        self.d_model, self.d_out, self.pool = d_model, d_out, pool
        self.map = nn.Linear(d_model, d_out)

    @property
    def invariant(self) -> bool:
        return True

    @with_dtypes_named
    def forward(
        self,
        x: Tensor,
        key_padding_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cu_seqlens: Tensor | Segments | None = None,
        max_seqlen: int | None = None,
    ) -> Tensor:
        refuse_causal_pooling("PooledHead", is_causal)
        check_tokens("PooledHead", x, self.d_model)
        keep = keep_from_key_padding_mask("PooledHead", x, key_padding_mask)
        segments = segments_of("PooledHead", x, key_padding_mask, cu_seqlens, max_seqlen)
        pool, packed_pool = _POOLS[self.pool]
        if segments is not None:
            return zero_padding(self.map(packed_pool(x, segments)), segments.lengths > 0)
        out: Tensor = self.map(pool(zero_padding(x, keep), keep))
        return out if keep is None else zero_padding(out, keep.any(-1))

    def stream(self, x: Tensor, state: Any = None) -> NoReturn:
        """There is none."""
        refuse_pooled_stream("PooledHead")

    def extra_repr(self) -> str:
        return f"ℝ^{{n×{self.d_model}}} → ℝ^{self.d_out}, {self.pool}"
