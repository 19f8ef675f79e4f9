"""The sets that patterns are unions of. Token k of n is related to token j, both counted from 0:

Band(w)         |j − k| ≤ w
SameBlock(ℓ)    ⌊j/ℓ⌋ = ⌊k/ℓ⌋
First(g)        j < g
BlockEnds(ℓ)    j = min(bℓ, n) − 1 for some b ≥ 1: the last token of every block, a cut-off one included
Stride(ℓ)       j ≡ k  (mod ℓ)
Drawn(r)        j one of r random tokens of k's own: `drawn.py`

`contains` broadcasts k against j, and computes on each of them alone whatever it can.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

Length = int | Tensor
"""The number of real tokens: one for all, or one per sequence, shaped to broadcast."""


class Relation(ABC):
    """A set of pairs (k, j) of tokens."""

    @abstractmethod
    def contains(self, k: Tensor, j: Tensor, n: Length) -> Tensor:
        """Is j related to k, for 0 ≤ j < n."""


@dataclass(frozen=True)
class Band(Relation):
    """|j − k| ≤ w; Band(0) is the token itself."""

    w: int

    def contains(self, k: Tensor, j: Tensor, n: Length) -> Tensor:
        return (j >= k - self.w) & (j <= k + self.w)


@dataclass(frozen=True)
class SameBlock(Relation):
    """⌊j/ℓ⌋ = ⌊k/ℓ⌋."""

    l: int  # noqa: E741

    def contains(self, k: Tensor, j: Tensor, n: Length) -> Tensor:
        return j // self.l == k // self.l


@dataclass(frozen=True)
class First(Relation):
    """j < g."""

    g: int

    def contains(self, k: Tensor, j: Tensor, n: Length) -> Tensor:
        return (j < self.g) & (k >= 0)


@dataclass(frozen=True)
class BlockEnds(Relation):
    """j = min(bℓ, n) − 1."""

    l: int  # noqa: E741

    def contains(self, k: Tensor, j: Tensor, n: Length) -> Tensor:
        return (j == self.ends(j // self.l, n)) & (k >= 0)

    def ends(self, block: Tensor, n: Length) -> Tensor:
        """The last token of a block; before 0 where there is no token."""
        return ((block + 1) * self.l).clamp(max=n) - 1


@dataclass(frozen=True)
class Stride(Relation):
    """j ≡ k (mod ℓ)."""

    l: int  # noqa: E741

    def contains(self, k: Tensor, j: Tensor, n: Length) -> Tensor:
        return j % self.l == k % self.l


SELF = Band(0)
