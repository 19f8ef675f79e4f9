"""The box cut into equal cells: coordinate c of x lies along axis c, of y along axis d + c, so values broadcast.

A value has the axes it depends on; a hull or maximum over y removes the y-axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, enclose
from sumformer.certificates.checker.network import Network, Polynomial

MAX_PER_AXIS = 64


def cells_per_axis(budget: int, axes: int) -> int:
    """The most cells per axis with cells^axes ≤ budget."""
    count = 1
    while count < MAX_PER_AXIS and (count + 1) ** axes <= budget:
        count += 1
    return count


@dataclass(frozen=True)
class Cells:
    """`count` cells per axis."""

    net: Network
    count: int

    def token(self, name: str) -> list[Interval]:
        """Each coordinate of x or y, its cells along its own axis; their union is the box."""
        out = []
        for c in range(self.net.d):
            low, high = self.net.centre[c] - self.net.radius[c], self.net.centre[c] + self.net.radius[c]
            ends = [low + (high - low) * Fraction(i, self.count) for i in range(self.count + 1)]
            out.append(self._along(name, c, [_down(e) for e in ends[:-1]], [-_down(-e) for e in ends[1:]]))
        return out

    def scaled(self, c: int) -> Interval:
        """v_c = (y_c − centre_c)/radius_c on the same cells, within [−1, 1]."""
        ends = [Fraction(2 * i, self.count) - 1 for i in range(self.count + 1)]
        return self._along("y", c, [_down(e) for e in ends[:-1]], [-_down(-e) for e in ends[1:]])

    def _along(self, name: str, c: int, low: list[float], high: list[float]) -> Interval:
        shape = [1] * (2 * self.net.d)
        shape[c if name == "x" else self.net.d + c] = self.count
        return Interval(np.array(low).reshape(shape), np.array(high).reshape(shape))

    @property
    def y_axes(self) -> tuple[int, ...]:
        return tuple(range(self.net.d, 2 * self.net.d))

    def full(self, value: Interval) -> Interval:
        """With all 2d axes, of length 1 where it does not depend."""
        return Interval(self.spread(value.lo), self.spread(value.hi))

    def spread(self, value: Floats) -> Floats:
        value = np.asarray(value)
        return value if value.ndim else value.reshape((1,) * (2 * self.net.d))

    def over_y(self, value: Interval) -> Interval:
        """The hull over all y."""
        return self.full(value).hull(self.y_axes)

    def max_over_y(self, value: Floats) -> Floats:
        result: Floats = self.spread(value).max(axis=self.y_axes, keepdims=True)
        return result

    def polynomial(self, polynomial: Polynomial, *, constant: bool = True) -> Interval:
        """Σ_γ c_γ Π_c T_{γ_c}(v_c), without its constant term if asked."""
        ops = IntervalOperations()
        out = ops.const(Fraction(0))
        for gamma, coefficient in polynomial:
            if not any(gamma) and not constant:
                continue
            value = ops.const(coefficient)
            for c, degree in enumerate(gamma):
                if degree:
                    value = ops.mul(value, self._chebyshev(c, degree))
            out = ops.add(out, value)
        return self.full(out)

    def _chebyshev(self, c: int, degree: int) -> Interval:
        """T_degree(v_c), made once."""
        if (c, degree) not in self._made:
            self._made[c, degree] = chebyshev(degree, self.scaled(c))
        return self._made[c, degree]

    @cached_property
    def _made(self) -> dict[tuple[int, int], Interval]:
        return {}


def chebyshev(degree: int, v: Interval) -> Interval:
    """T_k on intervals in [−1, 1]: the ends, and ±1 where k·arccos passes a multiple of π (slack 1e-7)."""
    if degree == 0:
        return Interval(np.ones(np.shape(v.lo)), np.ones(np.shape(v.lo)))
    if degree == 1:
        return v
    first, last = degree * np.arccos(np.clip(v.hi, -1, 1)) / np.pi, degree * np.arccos(np.clip(v.lo, -1, 1)) / np.pi
    ends = np.cos(np.pi * first), np.cos(np.pi * last)
    margin = 1e-13 * degree**2
    low, high = np.minimum(*ends) - margin, np.maximum(*ends) + margin
    slack = 1e-7 * degree
    top = np.ceil((first - slack) / 2) <= np.floor((last + slack) / 2)
    bottom = np.ceil((first - slack - 1) / 2) <= np.floor((last + slack - 1) / 2)
    return enclose(np.where(bottom, -1.0, np.maximum(low, -1)), np.where(top, 1.0, np.minimum(high, 1)))


def _down(value: Fraction) -> float:
    """The largest float64 ≤ value, or one below it."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else float(np.nextafter(nearest, -np.inf))
