"""L_c ≥ sup |∂k/∂z_c|, or ℓ_c ≥ sup |∂ log|k|/∂z_c|, over all differences |z_b| ≤ 2·radius_b, by slopes on cells.

k = c Π u^e as written has log|k| = log|c| + Σ e log|u|, and log|u| = v for u = exp(v).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sumformer.certificates.checker.bisection import largest
from sumformer.certificates.checker.differences import DifferenceKernel
from sumformer.certificates.checker.grid.slope import Slope, SlopeOperations
from sumformer.certificates.checker.grid.weighted_mean import factors
from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, from_fraction
from sumformer.targets.tree import Unary

BUDGET = 60_000  # cells
_REAL = IntervalOperations()


def steepest(
    kernel: DifferenceKernel,
    coordinates: Sequence[int],
    radii: Sequence[Fraction],
    which: int,
    goal: float,
    *,
    of_log: bool = False,
) -> float:
    """For coordinates[which]: cells above `goal` are halved until none is left or the budget is spent.

    Sides are measured in radii.
    """
    cells = np.full((1, len(radii)), -2.0), np.full((1, len(radii)), 2.0)

    def bounds(low: Floats, high: Floats) -> Floats:
        return _lengths(kernel, coordinates, radii, which, low, high, of_log)

    return largest(cells, bounds, goal, BUDGET)


def _lengths(
    kernel: DifferenceKernel,
    coordinates: Sequence[int],
    radii: Sequence[Fraction],
    which: int,
    low: Floats,
    high: Floats,
    of_log: bool,
) -> Floats:
    """The bound on each cell; ∞ where a value or a slope may not exist."""
    units = np.eye(len(radii))
    ops = SlopeOperations(len(low), units[which])
    z = {}
    for i, (c, radius) in enumerate(zip(coordinates, radii, strict=True)):
        value = _REAL.mul(from_fraction(radius), Interval(low[:, i], high[:, i]))
        z[c] = Slope(value, Interval(units[i], units[i]), np.asarray(units[which, i]))
    found = _log_of(kernel, ops, z) if of_log else kernel.value(ops, z)
    exists = np.isfinite(found.value.magnitude) & ~ops.bad
    lengths: Floats = np.where(exists & ~np.isnan(found.length), found.length, math.inf)
    return lengths


def _log_of(kernel: DifferenceKernel, ops: SlopeOperations, z: dict[int, Slope]) -> Slope:
    total = ops.const(Fraction(0))
    written = factors(kernel.expression)
    for u, e in [(kernel.expression, 1)] if written is None else written[1].items():
        inside = u.arg if isinstance(u, Unary) and u.fn == "exp" else u
        value = DifferenceKernel.of(inside, kernel.d).value(ops, z)
        if inside is u:
            value = ops.function("log", ops.function("abs", value))
        total = ops.add(total, ops.mul(ops.const(Fraction(e)), value))
    return total
