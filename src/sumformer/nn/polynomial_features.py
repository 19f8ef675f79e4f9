"""φ(x) = (x^β)_{0<|β|≤m}, or (Π_c T_{β_c}(x_c))_β: C(m+d, d) − 1 features, by recurrence.

Every feature is one product: of a feature with one coordinate less in its support and an entry of the one-coordinate
table 1, t, t², … (or T_0, T_1, T_2, …). The features of one support size are made together, so there are at most d
vectorised steps, whatever their number; each feature lies side by side for all tokens.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import torch
from torch import Tensor

from sumformer.errors import InputError
from sumformer.nn.derived_buffers import DerivedBuffers
from sumformer.nn.inputs import check_width
from sumformer.nn.pretrained import PretrainedModule

BASES = ("monomial", "chebyshev")


def multi_indices(d: int, degree: int) -> list[tuple[int, ...]]:
    """All β ∈ ℕ^d with 0 < |β| ≤ degree, by total degree, then lexicographically from the first coordinate."""
    return [
        tuple(chosen.count(c) for c in range(d))
        for total in range(1, degree + 1)
        for chosen in combinations_with_replacement(range(d), total)
    ]


class PolynomialFeatures(DerivedBuffers, PretrainedModule):
    """All monomials, or Chebyshev products, of total degree 1 … `degree` in d coordinates.

    With `basis="chebyshev"` the interval `lower … upper` is mapped to [−1, 1] first, where |T_β| ≤ 1.
    """

    def __init__(self, d: int, degree: int, basis: str = "monomial", lower: float = 0.0, upper: float = 1.0) -> None:
        super().__init__()
        if d < 1 or degree < 1:
            raise InputError(f"PolynomialFeatures: expected d ≥ 1 and degree ≥ 1, got d={d}, degree={degree}")
        if basis not in BASES:
            raise InputError(f"PolynomialFeatures: expected basis in {BASES}, got {basis!r}")
        if not lower < upper:
            raise InputError(f"PolynomialFeatures: expected lower < upper, got {lower}, {upper}")
        self.d, self.degree, self.basis, self.lower, self.upper = d, degree, basis, lower, upper
        self.indices = multi_indices(d, degree)
        self.d_out = len(self.indices)
        self._plan(self.indices)

    def forward(self, x: Tensor) -> Tensor:
        table = self._table(check_width("PolynomialFeatures", x, self.d).movedim(-1, 0).contiguous())
        levels = [table.index_select(0, self._derived("level_0", x))]
        for level in range(1, self.levels):
            parents = levels[-1].index_select(0, self._derived(f"parent_{level}", x))
            levels.append(parents * table.index_select(0, self._derived(f"level_{level}", x)))
        return torch.cat(levels).index_select(0, self._derived("order", x)).movedim(0, -1)

    def _table(self, x: Tensor) -> Tensor:
        """x (d, …) → (d·degree, …): entry c·degree + (b − 1) is the b-th power, or T_b, of coordinate c."""
        if self.basis == "monomial":
            powers = [x]
            for _ in range(1, self.degree):
                powers.append(powers[-1] * x)
        else:
            t = (x - self.lower) * (2.0 / (self.upper - self.lower)) - 1.0
            powers = [t, 2 * t * t - 1][: self.degree]
            for _ in range(2, self.degree):
                powers.append(2 * t * powers[-1] - powers[-2])
        return torch.stack(powers, dim=1).flatten(0, 1)

    def _plan(self, indices: list[tuple[int, ...]]) -> None:
        """Which table entry and which parent makes each feature, one group per support size."""
        groups: dict[int, list[tuple[int, ...]]] = {}
        for beta in indices:
            groups.setdefault(sum(b > 0 for b in beta), []).append(beta)
        self.levels = len(groups)
        place: dict[tuple[int, ...], int] = {}
        made: list[tuple[int, ...]] = []
        for level, size in enumerate(sorted(groups)):
            last = [max(c for c, b in enumerate(beta) if b) for beta in groups[size]]
            entries = [c * self.degree + beta[c] - 1 for c, beta in zip(last, groups[size], strict=True)]
            self._derive(f"level_{level}", entries, torch.long)
            if level:
                parents = [(*beta[:c], 0, *beta[c + 1 :]) for c, beta in zip(last, groups[size], strict=True)]
                self._derive(f"parent_{level}", [place[p] for p in parents], torch.long)
            place = {beta: i for i, beta in enumerate(groups[size])}
            made += groups[size]
        position = {beta: i for i, beta in enumerate(made)}
        self._derive("order", [position[beta] for beta in indices], torch.long)

    def extra_repr(self) -> str:
        return f"ℝ^{self.d} → ℝ^{self.d_out}, {self.basis} of total degree ≤ {self.degree}"
