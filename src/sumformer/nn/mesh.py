"""ℓ_a(r) = Π_{b≠a} (r + s − b)/(a − b), s = w/2 − 1: Lagrange's polynomials of w equidistant nodes, for r ∈ [0, 1]
between the two in the middle.

A coordinate of the box is cut into m intervals of length h. Its mesh has m + w − 1 nodes, s of them beyond either end:
node j lies at  centre + radius·(2(j − s)/m − 1). A token in interval i, at r of its length, has the weights ℓ_0 …
ℓ_{w−1} on the nodes i … i + w − 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import torch
from torch import Tensor

from sumformer.nn.scaling import scaled


@dataclass(frozen=True)
class Mesh:
    """Of one coordinate: m `intervals`, a stencil of an even `width` w."""

    intervals: int
    width: int

    @property
    def nodes(self) -> int:
        return self.intervals + self.width - 1

    def place(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """t ∈ [−1, 1] → the interval of each token, and ℓ_a at its place in it, (…, w)."""
        s = scaled(t + 1, self.intervals / 2)
        interval = s.detach().long().clamp(0, self.intervals - 1)  # s ≥ 0; of NaN some interval, and weights NaN
        return interval, self.weights(s - interval)

    def weights(self, r: Tensor) -> Tensor:
        """ℓ_a(r) by products from the left and from the right: no quotient, and each ℓ_a to a few roundings."""
        steps = [r + (self.width // 2 - 1 - b) for b in range(self.width)]
        left, right = [torch.ones_like(r)], [torch.ones_like(r)]
        for b in range(self.width - 1):
            left.append(left[-1] * steps[b])
            right.append(right[-1] * steps[-1 - b])
        found = [scaled(le * ri, q) for le, ri, q in zip(left, reversed(right), self.scales, strict=True)]
        return torch.stack(found, dim=-1)

    @property
    def scales(self) -> list[float]:
        """1/Π_{b≠a} (a − b)."""
        last = self.width - 1
        return [(-1) ** (last - a) / (factorial(a) * factorial(last - a)) for a in range(self.width)]
