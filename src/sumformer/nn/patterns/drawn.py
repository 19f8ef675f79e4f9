"""Drawn(r): from each of r equal stretches of the sequence, token k draws one token j at random.

    stretch s = [⌊s·n/r⌋, ⌊(s+1)·n/r⌋),   j = first of the stretch + ⌊u(seed, k, s) · its length⌋,   u ∈ [0, 1)

The r tokens are distinct, and a closed form of (seed, k, s, n): nothing is stored, the draw is the same on every
device, and sequences of different lengths in one batch each get the draw of their own length. u is a hash in integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sumformer.nn.patterns.relations import Length, Relation

_MASK = (1 << 32) - 1
_MULTIPLIER = 0x45D9F3B  # of a 32-bit integer hash; products stay below 2^63


@dataclass(frozen=True)
class Drawn(Relation):
    """r tokens of each token's own. In causal order n is k + 1 for token k: later tokens change nothing."""

    r: int
    seed: int = 0

    def places(self, k: Tensor, n: Length) -> tuple[Tensor, Tensor]:
        """k (…, 1) → the j drawn (…, r), and which of them exist: a stretch without a token gives none."""
        s = torch.arange(self.r, device=k.device)
        first = s * n // self.r
        length = (s + 1) * n // self.r - first
        return (self._hash(k, s) * length).bitwise_right_shift_(32).add_(first), length > 0

    def contains(self, k: Tensor, j: Tensor, n: Length) -> Tensor:
        places, exist = self.places(k, n)
        inside = (k < 0) & (j < 0)
        for s in range(self.r):
            inside = inside | ((places[..., s : s + 1] == j) & exist[..., s : s + 1])
        return inside

    def earlier(self, k: Tensor, last: int) -> Tensor:
        places, exist = self.places(k, k + 1)
        return torch.where(exist, places, -1)

    def lasting(self, j: Tensor, t: int) -> Tensor:
        return j >= 0

    def _hash(self, k: Tensor, s: Tensor) -> Tensor:
        """32 bits that look random: a strong hash of the row and of the column, and a last round on their product."""
        row = _mix(_mix(k) ^ _mix(torch.full_like(s[:1], self.seed & _MASK)))
        column = _mix(s + self.seed % 1_000_003 + (1 << 20)) >> 1  # below 2^31
        return _round(((row | 1) * (column | 1)).bitwise_and_(_MASK))


def _round(x: Tensor) -> Tensor:
    """In place but for one copy: new memory costs more than the arithmetic."""
    x = (x ^ (x >> 16)).mul_(_MULTIPLIER).bitwise_and_(_MASK)
    return x.bitwise_xor_(x >> 15)


def _mix(x: Tensor) -> Tensor:
    return _round(_round(x + 0x9E3779B9 & _MASK))
