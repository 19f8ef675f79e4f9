"""Cells of the box for x and for y, and p(v) over the y-cells: interval bounds are taken cell by cell."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sumformer.algebra.interval import Interval
from sumformer.algebra.rounding import fraction_bounds
from sumformer.targets.domain import Box

PAIRS = 2**14


class Cells:
    """A product grid of x-cells and y-cells with at most about `PAIRS` pairs; each of shape (cells, d)."""

    def __init__(self, box: Box, pairs: int = PAIRS) -> None:
        self.box = box
        per_axis = max(1, min(32, int(pairs ** (1 / (2 * box.d)))))
        edges = np.linspace(-1.0, 1.0, per_axis + 1)
        grids = np.meshgrid(*([np.arange(per_axis)] * box.d), indexing="ij")
        index = np.stack([g.ravel() for g in grids], axis=-1)
        self.t = Interval(edges[index], edges[index + 1])
        self.x, self.y = self._tokens(), self._tokens()

    def _tokens(self) -> Interval:
        """centre + radius·t; two objects, since x and y are two variables."""
        centre = [Interval.from_fraction(c) for c in self.box.centre]
        radius = [Interval.from_fraction(r) for r in self.box.radius]
        ends = [
            (fraction_bounds(a)[0], fraction_bounds(b)[1]) for a, b in zip(self.box.lower, self.box.upper, strict=True)
        ]
        # no token leaves the box, though centre + radius·t, rounded outward, does
        columns = [
            (centre[c] + radius[c] * self.t[:, c]).intersect(
                Interval(np.full(len(self.t.lo), a), np.full(len(self.t.lo), b))
            )
            for c, (a, b) in enumerate(ends)
        ]
        return Interval(np.stack([c.lo for c in columns], axis=-1), np.stack([c.hi for c in columns], axis=-1))

    def polynomial(self, polynomial: tuple[tuple[tuple[int, ...], Fraction], ...]) -> Interval:
        """p(v) over the y-cells, shape (1, cells)."""
        total = Interval(np.zeros(self.t.shape[0]), np.zeros(self.t.shape[0]))
        for gamma, coefficient in polynomial:
            value = Interval.from_fraction(coefficient)
            for c, k in enumerate(gamma):
                if k:
                    value = value * self._chebyshev(c, k)
            total = total + value
        return total[None, :]

    def _chebyshev(self, c: int, k: int) -> Interval:
        """T_k(v_c) by the recurrence, cut to [−1, 1]."""
        t = self.t[:, c]
        previous, current = Interval.point(np.ones(t.shape)), t
        for _ in range(1, k):
            previous, current = (
                current,
                (2 * t * current - previous).intersect(Interval(np.full(t.shape, -1.0), np.full(t.shape, 1.0))),
            )
        return current
