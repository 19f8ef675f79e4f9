"""M_c(δ) ≥ sup |k(z)| over |Re z_c| ≤ D_c + δ, |Im z_c| ≤ δ and real |z_b| ≤ D_b, D = h(G − 1), by complex intervals.

Trees have real coefficients, so |k(z̄)| = |k(z)| and 0 ≤ Im z_c is enough. Rectangles that cover it are all evaluated: a
finite enclosure on each proves that k is analytic there, and their maximum is M.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sumformer.certificates.checker.bisection import BUDGET, largest
from sumformer.certificates.checker.differences import DifferenceKernel
from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, from_fraction
from sumformer.certificates.checker.rectangle import Rectangle, RectangleOperations, finite_modulus, rectangle
from sumformer.certificates.checker.verification import Unproved

_REAL = IntervalOperations()
_WIDEST = 10**6  # δ/h


def maximum_on_strip(
    kernel: DifferenceKernel,
    coordinates: Sequence[int],
    spacings: Sequence[Fraction],
    nodes: Sequence[int],
    which: int,
    reach: float,
    goal: float,
) -> float:
    """M for coordinates[which] and δ = reach: cells above `goal` are halved until none is left or the budget is spent.

    Sides are measured in h: a cell has one for each coordinate and the imaginary part last.
    """
    if not (0 < reach < math.inf and Fraction(reach) <= _WIDEST * spacings[which]):
        raise Unproved(f"expected a reach from 0 to {_WIDEST} intervals, got {reach}")
    beyond = Fraction(reach) / spacings[which]
    ends = [_up(Fraction(G - 1) + (beyond if i == which else 0)) for i, G in enumerate(nodes)]
    low, high = np.array([[*(-end for end in ends), 0.0]]), np.array([[*ends, _up(beyond)]])

    def bounds(low: Floats, high: Floats) -> Floats:
        return _modulus(kernel, coordinates, spacings, which, low, high)

    found = largest((low, high), bounds, goal, BUDGET)
    if found == math.inf:
        raise Unproved(f"K is not shown to be analytic for the reach {reach} in coordinate {coordinates[which]}")
    return found


def _modulus(
    kernel: DifferenceKernel,
    coordinates: Sequence[int],
    spacings: Sequence[Fraction],
    which: int,
    low: Floats,
    high: Floats,
) -> Floats:
    """An upper bound of |k| on every cell, ∞ where it is not shown to be analytic."""
    ops, zero = RectangleOperations(len(low)), from_fraction(Fraction(0))
    z: dict[int, Rectangle] = {}
    for i, (c, h) in enumerate(zip(coordinates, spacings, strict=True)):
        scale = from_fraction(h)
        imaginary = _REAL.mul(scale, Interval(low[:, -1], high[:, -1])) if i == which else zero
        z[c] = rectangle(_REAL.mul(scale, Interval(low[:, i], high[:, i])), imaginary)
    return finite_modulus(kernel.value(ops, z), ops.bad)


def _up(value: Fraction) -> float:
    """A float64 ≥ value."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
