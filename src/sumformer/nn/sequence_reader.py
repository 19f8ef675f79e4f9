"""Sequences padded or packed, X and which of its tokens are there: what a constructed network reads."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

from sumformer.nn.pretrained import PretrainedModule
from sumformer.nn.segments import Segments, read_sequences


class SequenceReader(PretrainedModule, ABC):
    """`forward` checks what it is given; of a pack, sequences of about one length are read as a batch."""

    d: int
    """The width of a token."""

    @abstractmethod
    def _read(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """N(X) for x (batch, n, d); `keep` (batch, n) marks the real tokens, None means all are."""

    def forward(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        *,
        cu_seqlens: Tensor | Segments | None = None,
        max_seqlen: int | None = None,
    ) -> Tensor:
        given = (x, attention_mask, cu_seqlens, max_seqlen)
        return read_sequences(type(self).__name__, self.d, given, self._read)
