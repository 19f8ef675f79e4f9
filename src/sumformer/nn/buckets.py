"""A pack as a few padded batches: sequences whose lengths are within a factor of 2 stand together.

A batch is as long as its longest sequence, so that padding at most doubles the tokens, and there are at most
log₂(longest / shortest) + 2 batches, however many sequences. Empty sequences stand in none.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Bucket:
    """Some sequences of a pack as one batch (N, length)."""

    tokens: Tensor
    """(m,) which tokens of the pack are theirs, in order."""
    places: Tensor
    """(m,) where each stands among the N · length places."""
    keep: Tensor | None
    """(N, length), True where a token stands; None where one stands everywhere."""
    length: int

    def pad(self, x: Tensor) -> Tensor:
        """(1, total, d) → (N, length, d), zeros behind each sequence."""
        rows = x[0].index_select(0, self.tokens)
        if self.keep is not None:
            rows = x.new_zeros(self.keep.numel(), x.shape[-1]).index_copy(0, self.places, rows)
        return torch.unflatten(rows, 0, (-1, self.length))

    def unpad(self, padded: Tensor) -> Tensor:
        """(N, length, m) → (tokens, m)."""
        return padded.flatten(0, 1).index_select(0, self.places)


@dataclass(frozen=True)
class Buckets:
    """All sequences of a pack."""

    batches: tuple[Bucket, ...]
    back: Tensor
    """(total,) where each token of the pack stands among the tokens of all batches."""

    @classmethod
    def of(cls, lengths: Tensor, ids: Tensor, ranks: Tensor) -> Buckets:
        """Of sequences (N,) whose tokens (total,) have these sequences and places."""
        kinds = torch.frexp(lengths.double()).exponent  # 2^(kind − 1) ≤ length < 2^kind
        kinds = torch.where(lengths > 0, kinds, -1)
        if int((lengths > 0).sum()) * int(lengths.max()) <= 2 * ids.shape[0]:
            kinds = torch.where(lengths > 0, 1, -1)  # one batch is no longer than twice the pack
        batches = tuple(_bucket(kinds == kind, lengths, ids, ranks) for kind in sorted({*kinds.tolist()} - {-1}))
        return cls(batches, torch.cat([batch.tokens for batch in batches]).argsort())

    def join(self, parts: list[Tensor]) -> Tensor:
        """What `unpad` gave of each batch → (1, total, m)."""
        return parts[0].unsqueeze(0) if len(parts) == 1 else torch.cat(parts).index_select(0, self.back).unsqueeze(0)


def _bucket(chosen: Tensor, lengths: Tensor, ids: Tensor, ranks: Tensor) -> Bucket:
    own, tokens = lengths[chosen], chosen[ids].nonzero()[:, 0]
    length = int(own.max())
    rows = (chosen.long().cumsum(0) - 1)[ids[tokens]]
    keep = torch.arange(length, device=own.device) < own.unsqueeze(-1)
    return Bucket(tokens, rows * length + ranks[tokens], None if tokens.shape[0] == keep.numel() else keep, length)
