"""How a constructed Sumformer reads its input: y_i = ψ(x_i, Σ), Σ over all real tokens, over k ≤ i, or over a pack's
own sequence.

A certificate speaks of Σ by the fixed tree of `token_sum`. Padding adds exact zeros to that tree, and a pack is read as
a padded batch, so both keep it. In causal order Σ is a running sum, which no certificate covers: its roundings grow
with n, the error of the features and of ψ is the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from sumformer.nn.box_features import BoxFeatures
from sumformer.nn.inputs import check_piece, zero_padding
from sumformer.nn.segments import Segments, read_sequences
from sumformer.nn.summary import Summary
from sumformer.nn.token_order import compact, spread

PREFIX_ELEMENTS = 2**22


class ExpressionReadings(BoxFeatures, ABC):
    """A subclass gives φ of single tokens, Σ by its tree, ψ and the width; `forward` and `stream` are here."""

    latent_dimension: int

    @abstractmethod
    def _features(self, z: Tensor) -> Tensor:
        """φ(x_i), (batch, n, d) → (batch, n, d') in the arithmetic of the sums."""

    @abstractmethod
    def _query_size(self) -> int:
        """The numbers that one Σ becomes when it is contracted with the kernels."""

    def forward(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cu_seqlens: Tensor | Segments | None = None,
        max_seqlen: int | None = None,
    ) -> Tensor:
        given = (x, attention_mask, cu_seqlens, max_seqlen)
        return read_sequences(type(self).__name__, self.d, given, lambda z, keep: self._read(z, keep, is_causal))

    def _read(self, x: Tensor, keep: Tensor | None, is_causal: bool) -> Tensor:
        x = self._padded(x, keep)
        if is_causal:
            return zero_padding(spread(self.stream(compact(x, keep))[0], keep), keep)
        # A row of nothing but padding is computed on tokens at the centre, where ψ is finite, and erased.
        seen = None if keep is None else keep | ~keep.any(-1, keepdim=True)
        return zero_padding(self.psi_of(x, self._summarise(x, None, seen)), keep)

    def stream(self, x: Tensor, state: Summary | None = None) -> tuple[Tensor, Summary]:
        """The next tokens of a stream: their outputs in causal order, and the state for those that follow.

        Every token has a Σ of its own, n·d' numbers; they are held for a slab of tokens at a time.
        """
        check_piece(f"{type(self).__name__}.stream", x, self.d, state, Summary)
        outs = []
        for piece in torch.split(x, self._prefix_slab(x), dim=1):
            total, count = self._prefixes(piece, state)
            state = Summary(total, count).last()
            out = self.psi_of(piece.flatten(0, 1).unsqueeze(1), Summary(total.flatten(0, 1), count.flatten()))
            outs.append(torch.unflatten(out.squeeze(1), 0, piece.shape[:2]))
        if state is None:
            raise AssertionError("there is at least one token")
        return torch.cat(outs, dim=1), state

    def _prefixes(self, x: Tensor, state: Summary | None) -> tuple[Tensor, Tensor]:
        """Σ and the count of `state` and tokens 1 … i: (batch, n, d') and (batch, n)."""
        total = self._features(x).cumsum(dim=1)
        count = torch.arange(1, x.shape[1] + 1, dtype=torch.float64, device=x.device).expand(x.shape[:2])
        if state is None:
            return total, count
        return state.total.unsqueeze(1) + total, state.count.unsqueeze(1) + count

    def _prefix_slab(self, x: Tensor) -> int:
        if torch.compiler.is_compiling():
            return x.shape[1]
        size = max(1, self.latent_dimension, self._query_size())
        return min(x.shape[1], max(1, PREFIX_ELEMENTS // (size * max(1, x.shape[0]))))
