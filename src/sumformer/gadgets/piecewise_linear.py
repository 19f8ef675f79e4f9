"""P(t) = start + Σ_i bend_i · R(t − knot_i), R(s) = max(s, 0): what one hidden layer computes of one number.

The slope after knot_i is bend_0 + … + bend_i; P is constant before knot_0. Knots and bends are float64 numbers, and
what is proved of P is proved of these floats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumformer.algebra.interval import Interval
from sumformer.algebra.rounding import FloatArray


@dataclass(frozen=True, eq=False)
class PiecewiseLinear:
    """A function on [knot_0, hi]."""

    knots: FloatArray
    bends: FloatArray
    start: float

    @property
    def units(self) -> int:
        return int(self.knots.size)

    @property
    def slopes(self) -> FloatArray:
        """The slope on each segment, as it is computed; off by roundings from the exact one."""
        return np.cumsum(self.bends)

    def __call__(self, t: FloatArray) -> FloatArray:
        return np.asarray(self.start + np.maximum(np.asarray(t)[..., None] - self.knots, 0.0) @ self.bends)

    def at_knots(self, hi: float) -> tuple[FloatArray, Interval]:
        """knot_0, …, knot_m, hi and enclosures of P there; between them P is linear."""
        ends = np.append(self.knots, hi)
        steps = Interval.point(ends[1:]) - Interval.point(ends[:-1])
        slopes = _prefix(self.bends)
        rises = slopes * steps
        low, high = _prefix(rises.lo), _prefix(rises.hi)
        return ends, Interval(np.append(0.0, low.lo), np.append(0.0, high.hi)) + self.start

    def scaled(self, factor: float) -> PiecewiseLinear:
        """factor · P, rounded; `factor` a power of two is exact."""
        return PiecewiseLinear(self.knots, self.bends * factor, self.start * factor)

    def plus_slope(self, slope: float, constant: float = 0.0) -> PiecewiseLinear:
        """P(t) + slope·(t − knot_0) + constant: a linear term costs nothing."""
        bends = self.bends.copy()
        bends[0] += slope
        return PiecewiseLinear(self.knots, bends, self.start + constant)


def through(ends: FloatArray, values: FloatArray) -> PiecewiseLinear:
    """The piecewise-linear function through (ends_i, values_i), up to rounding of its coefficients."""
    slopes = np.diff(values) / np.diff(ends)
    bends = np.diff(slopes, prepend=0.0)
    return PiecewiseLinear(np.asarray(ends[:-1]), bends, float(values[0]))


def _prefix(values: FloatArray) -> Interval:
    """Enclosures of Σ_{j ≤ i} values_j by blocks of √m; a running sum errs by ≤ Σ_j u|s_j|, s_j its parts."""
    size = max(1, int(np.ceil(np.sqrt(values.size))))
    blocks = np.zeros(-(-values.size // size) * size)
    blocks[: values.size] = values
    inner = np.cumsum(blocks.reshape(-1, size), axis=1)
    within = np.cumsum(np.abs(inner), axis=1)
    ends = np.cumsum(inner[:, -1])
    before = np.append(0.0, np.cumsum(within[:, -1] + np.abs(ends))[:-1])
    sums = np.append(0.0, ends[:-1])[:, None] + inner
    slack = (before[:, None] + within + np.abs(sums)) * 2.0**-52 + 2.0**-1000
    low, high = ((sums + side * slack).reshape(-1)[: values.size] for side in (-1, 1))
    return Interval(np.nextafter(low, -np.inf), np.nextafter(high, np.inf))
