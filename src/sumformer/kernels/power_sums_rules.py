"""How values make values and features: x^α x^β = x^(α+β); T_i(s) T_j(t) = T_i(s) T_j(t), of two coordinates; and of one
D_(a+b) = D_a D_b − D_(a−b), D_k = 2 T_k.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy
from numpy.typing import NDArray

from sumformer.kernels.power_sums_cover import Numbers, Space, pairs

LIMIT, ROUNDINGS = 1.9, 16.2
"""e_k ≤ 1.9 k², to keep T_k within 2 k² u; a sum that is carried every period is within 16.2 u Σ|φ|."""


class Monomials:
    spread, starts, rounds = 2, 4, 360

    def sums(self, space: Space, have: Numbers) -> Numbers:
        first, second = pairs(len(have))
        sums = have[first] + have[second]
        return numpy.unique(sums[space.orbit[sums] > 0])

    def candidates(self, space: Space, have: Numbers, sums: Numbers) -> Numbers:
        return sums

    def adds(self, space: Space, have: Numbers, new: Numbers) -> Numbers:
        return numpy.concatenate([new[:, None] + have, 2 * new[:, None]], axis=1)

    def ladder(self, space: Space, heights: list[int]) -> list[int]:
        """By halves, all coordinates together."""
        values: list[int] = []

        def make(beta: list[int]) -> None:
            value = sum(b * u for b, u in zip(beta, space.units, strict=True))
            if sum(beta) > 1 and value not in values:
                low = [b // 2 for b in beta]
                if not any(low):
                    low[next(c for c, b in enumerate(beta) if b)] = 1
                make(low)
                make([b - a for a, b in zip(low, beta, strict=True)])
                values.append(value)

        make(heights)
        return values


class Chebyshev:
    """The kernel may use T_k made in any of these ways: it is kept within 2 k² u, for |t| ≤ 1.

    Made from T_a, T_b and T_(a−b) it is off by at most e_k u, e_k = 2 (e_a + e_b) + e_(a−b) + 1, and terms of u², for
    which `LIMIT` leaves room. Of one coordinate also the sums may be: Σ T_a T_b, off by (16.2 + e_a + e_b) u a token,
    gives Σ T_k = 2 Σ T_a T_b − Σ T_(a−b), off by (3 · 16.2 + e_k − 1) u a token, if that is within 2 k² u.
    """

    spread, starts, rounds = 4, 1, 120

    def __init__(self, sides: bool) -> None:
        """With `sides`, features are products of the first half of the coordinates with the other: a smaller search."""
        self.sides = sides

    def sums(self, space: Space, have: Numbers) -> Numbers:
        first, second = pairs(len(have))
        sums = (have[first] + have[second])[self._gives(space, have[first], have[second])]
        if space.d == 1:
            sums = numpy.append(sums, [*folds(frozenset(have.tolist()), space.degree)]).astype(numpy.int64)
        return numpy.unique(sums[space.orbit[sums] > 0])

    def candidates(self, space: Space, have: Numbers, sums: Numbers) -> Numbers:
        first, second = pairs(len(have))
        one, other = space.support[have[first]], space.support[have[second]]
        good = one & other == 0
        if self.sides:
            low, high = _halves(space.d)
            good &= ((one | other) & high == 0) | ((one | other) & low == 0)
        sums = (have[first] + have[second])[good]
        pure = [k * u for u, degrees in _pure(space, have) for k in steps(degrees, space.degree)]
        return numpy.unique(numpy.append(sums[space.orbit[sums] > 0], pure)).astype(numpy.int64)

    def adds(self, space: Space, have: Numbers, new: Numbers) -> Numbers:
        sums = new[:, None] + have
        if space.d == 1:
            return numpy.where(numpy.isin(abs(new[:, None] - have), have), sums, new[:, None])
        return numpy.where(self._gives(space, new[:, None], have), sums, 0)

    def _gives(self, space: Space, first: Numbers, second: Numbers) -> NDArray[numpy.bool_]:
        one, other = space.support[first], space.support[second]
        if not self.sides:
            apart: NDArray[numpy.bool_] = one & other == 0
            return apart
        low, high = _halves(space.d)
        across: NDArray[numpy.bool_] = ((one & high == 0) & (other & low == 0)) | (
            (one & low == 0) & (other & high == 0)
        )
        return across

    def ladder(self, space: Space, heights: list[int]) -> list[int]:
        """By halves, each coordinate by itself."""
        values: list[int] = []

        def make(k: int, unit: int) -> None:
            if k > 1 and k * unit not in values:
                make(k // 2, unit)
                make(k - k // 2, unit)
                values.append(k * unit)

        for height, unit in zip(heights, space.units, strict=True):
            make(height, unit)
        return values


def _halves(d: int) -> tuple[int, int]:
    low = (1 << (d + 1) // 2) - 1
    return low, (1 << d) - 1 - low


def _pure(space: Space, have: Numbers) -> Iterator[tuple[int, frozenset[int]]]:
    """The unit of each coordinate and the degrees of what is of this coordinate alone."""
    for c, unit in enumerate(space.units):
        yield unit, frozenset((have[space.support[have] == 1 << c] // unit).tolist())


@cache
def steps(degrees: frozenset[int], most: int) -> dict[int, tuple[int, int]]:
    """k → (a, b), a ≥ b, from which T_k is made with the smallest bound, for k at hand or one step away."""
    return {k: (k - b, b) for k, (_, b) in _errors(degrees, most)[0].items()}


@cache
def folds(degrees: frozenset[int], most: int) -> dict[int, tuple[int, int]]:
    """k → (a, b) for the k not at hand whose sums may be had from Σ T_a T_b and Σ T_(a−b), a > b."""
    return {k: (k - b, b) for k, (_, b) in _errors(degrees, most)[1].items() if k not in degrees}


@cache
def _errors(degrees: frozenset[int], most: int) -> tuple[dict[int, tuple[int, int]], dict[int, tuple[int, int]]]:
    error = {0: 0, 1: 0}
    made: dict[int, tuple[int, int]] = {}
    folded: dict[int, tuple[int, int]] = {}
    for k in range(2, most + 1):
        ways = [
            (2 * (error[k - b] + error[b]) + error[k - 2 * b] + 1, b)
            for b in range(1, k // 2 + 1)
            if b in error and k - b in error and k - 2 * b in error
        ]
        best = min(ways, default=(10**9, 0))
        if best[0] <= LIMIT * k * k:
            made[k] = best
            if k in degrees:
                error[k] = best[0]
        apart = min((way for way in ways if k != 2 * way[1]), default=(10**9, 0))
        if 3 * ROUNDINGS + apart[0] <= LIMIT * k * k:
            folded[k] = apart
    return made, folded
