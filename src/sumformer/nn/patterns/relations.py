"""The sets that patterns are unions of. Token k of n is related to token j, both counted from 0:

Band(w)         |j − k| ≤ w
SameBlock(ℓ)    ⌊j/ℓ⌋ = ⌊k/ℓ⌋
First(g)        j < g
BlockEnds(ℓ)    j = min(bℓ, n) − 1 for some b ≥ 1: the last token of every block, a cut-off one included
Stride(ℓ)       j ≡ k  (mod ℓ)
Drawn(r)        j one of r random tokens of k's own: `drawn.py`

`contains` broadcasts k against j, and computes on each of them alone whatever it can. `earlier` and `lasting` speak of
causal order, in which token k is the last of k + 1: whom it is related to, and who is related to a token yet to come.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

Length = int | Tensor
"""The number of real tokens: one for all, or one per sequence, shaped to broadcast."""


class Relation(ABC):
    """A set of pairs (k, j) of tokens."""

    @abstractmethod
    def contains(self, k: Tensor, j: Tensor, n: Length) -> Tensor:
        """Is j related to k, for 0 ≤ j < n."""

    @abstractmethod
    def earlier(self, k: Tensor, last: int) -> Tensor:
        """k (m, 1), all ≤ last → (m or 1, ·): every j ≤ k related to k, once; other entries lie outside 0 … k."""

    @abstractmethod
    def lasting(self, j: Tensor, t: int) -> Tensor:
        """May j < t be related to a token k ≥ t?"""


@dataclass(frozen=True)
class Band(Relation):
    """|j − k| ≤ w; Band(0) is the token itself."""

    w: int

    def contains(self, k: Tensor, j: Tensor, n: Length) -> Tensor:
        return (j >= k - self.w) & (j <= k + self.w)

    def earlier(self, k: Tensor, last: int) -> Tensor:
        return k + torch.arange(-self.w, 1, device=k.device)

    def lasting(self, j: Tensor, t: int) -> Tensor:
        return j >= t - self.w


@dataclass(frozen=True)
class SameBlock(Relation):
    """⌊j/ℓ⌋ = ⌊k/ℓ⌋."""

    l: int  # noqa: E741

    def contains(self, k: Tensor, j: Tensor, n: Length) -> Tensor:
        return j // self.l == k // self.l

    def earlier(self, k: Tensor, last: int) -> Tensor:
        return k // self.l * self.l + torch.arange(self.l, device=k.device)

    def lasting(self, j: Tensor, t: int) -> Tensor:
        return j >= t // self.l * self.l


@dataclass(frozen=True)
class First(Relation):
    """j < g."""

    g: int

    def contains(self, k: Tensor, j: Tensor, n: Length) -> Tensor:
        return (j < self.g) & (k >= 0)

    def earlier(self, k: Tensor, last: int) -> Tensor:
        return torch.arange(self.g, device=k.device).unsqueeze(0)

    def lasting(self, j: Tensor, t: int) -> Tensor:
        return j < self.g


@dataclass(frozen=True)
class BlockEnds(Relation):
    """j = min(bℓ, n) − 1."""

    l: int  # noqa: E741

    def contains(self, k: Tensor, j: Tensor, n: Length) -> Tensor:
        return (j == self.ends(j // self.l, n)) & (k >= 0)

    def ends(self, block: Tensor, n: Length) -> Tensor:
        """The last token of a block; before 0 where there is no token."""
        return ((block + 1) * self.l).clamp(max=n) - 1

    def earlier(self, k: Tensor, last: int) -> Tensor:
        """The ends of whole blocks, and k itself, the end of its own."""
        block = torch.arange(last // self.l + 1, device=k.device)
        return torch.where(block > k // self.l, -1, self.ends(block, k + 1))

    def lasting(self, j: Tensor, t: int) -> Tensor:
        return j % self.l == self.l - 1


@dataclass(frozen=True)
class Stride(Relation):
    """j ≡ k (mod ℓ)."""

    l: int  # noqa: E741

    def contains(self, k: Tensor, j: Tensor, n: Length) -> Tensor:
        return j % self.l == k % self.l

    def earlier(self, k: Tensor, last: int) -> Tensor:
        return k % self.l + self.l * torch.arange(last // self.l + 1, device=k.device)

    def lasting(self, j: Tensor, t: int) -> Tensor:
        return j >= 0


SELF = Band(0)
