"""F(s) = Σ_i w_i R(s − κ_i): what units that read one number s add to one coordinate. Enclosed at its breakpoints.

F is linear between neighbouring ends, so against a function g with g'' ∈ [m, M] on a piece of length h, F − g lies
below its chord + 4B τ(1 − τ), 0 ≤ τ ≤ 1, B = max(M, 0) h²/8, and above its chord − 4B τ(1 − τ), B = max(−m, 0) h²/8.
Where g'' is unbounded, by the spread of both on the piece.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumformer.certificates.checker.compiled.jets import Jet
from sumformer.certificates.checker.interval import Floats, Interval

_U = float(np.finfo(np.longdouble).eps)


@dataclass(frozen=True)
class Pieces:
    """`ends` s_0 < … < s_m and lo ≤ F(s_j) ≤ hi; F is linear in between."""

    ends: Floats
    lo: Floats
    hi: Floats

    @property
    def size(self) -> float:
        return float(max(np.abs(self.lo).max(), np.abs(self.hi).max()))


def pieces(knots: Floats, weights: Floats, low: float, high: float) -> Pieces:
    """F on [low, high]; running sums in extended precision, their rounding bounded a priori."""
    order = np.argsort(knots, kind="stable")
    knots, weights = knots[order], weights[order]
    inside = (knots > low) & (knots < high)
    ends = np.unique(np.concatenate([[low], knots[inside], [high]]))
    start = int(np.searchsorted(knots, low, side="right"))  # units active at `low`
    s, w = knots.astype(np.longdouble), weights.astype(np.longdouble)
    lost = 0.0
    first = np.longdouble(0.0)
    if start:
        parts = w[:start] * (np.longdouble(low) - s[:start])
        first = parts.sum()
        lost = (start + 3) * _U * float(np.abs(parts).sum())
    # slope on [ends_j, ends_{j+1}]: Σ of the weights of all knots ≤ ends_j
    sums = np.concatenate([[np.longdouble(0.0)], np.cumsum(w)])
    wrong = np.concatenate([[0.0], np.cumsum(np.abs(sums[1:]).astype(np.float64))]) * _U
    at = np.searchsorted(knots, ends[:-1], side="right")
    steps = np.diff(ends.astype(np.longdouble))
    rises = sums[at] * steps
    values = first + np.concatenate([[np.longdouble(0.0)], np.cumsum(rises)])
    each = wrong[at] * steps.astype(np.float64) + 4 * _U * np.abs(rises).astype(np.float64)
    error = lost + np.concatenate([[0.0], np.cumsum(each)]) * (1 + 1e-9)
    error = error + np.cumsum(np.abs(values).astype(np.float64)) * _U * (1 + 1e-9)
    middle = values.astype(np.float64)
    error = error * (1 + 1e-9) + np.abs(middle) * 2.0**-52 + 1e-300
    return Pieces(ends, np.nextafter(middle - error, -np.inf), np.nextafter(middle + error, np.inf))


def gap(p: Pieces, at: Interval, over: Jet) -> tuple[float, float]:
    """[min, max] of F − g; `at` is g at the ends, `over` its jet on the pieces."""
    low, high = np.nextafter(p.lo - at.hi, -np.inf), np.nextafter(p.hi - at.lo, np.inf)
    eighth = np.nextafter(np.diff(p.ends) ** 2 / 8 * (1 + 1e-12), np.inf)  # not 0: a curvature may be ∞
    below = -peak(-low[:-1], -low[1:], np.maximum(-over.second.lo, 0.0) * eighth)
    above = peak(high[:-1], high[1:], np.maximum(over.second.hi, 0.0) * eighth)
    least = np.minimum(p.lo[:-1], p.lo[1:]) - over.value.hi
    most = np.maximum(p.hi[:-1], p.hi[1:]) - over.value.lo
    below = np.where(np.isnan(below), least, np.maximum(below, least))
    above = np.where(np.isnan(above), most, np.minimum(above, most))
    slack = 4e-16 * (p.size + float(over.value.magnitude.max()))
    return float(below.min()) - slack, float(above.max()) + slack


def peak(a: Floats, b: Floats, B: Floats) -> Floats:
    """max over 0 ≤ τ ≤ 1 of (1 − τ) a + τ b + 4B τ(1 − τ), rounded up."""
    inside = ~(np.abs(b - a) >= 4 * B)  # a B that is no number is not 0
    with np.errstate(all="ignore"):
        top = (a + b) / 2 + B + np.abs(b - a) * (np.abs(b - a) / np.where(inside, 16 * B, 1.0))
    found = np.where(inside, top, np.maximum(a, b))
    return np.asarray(found + 4e-16 * (np.abs(a) + np.abs(b) + np.where(inside, B, 0.0)))


def shifted(s: Floats, offset: float) -> Interval:
    """s + offset, a point wherever the sum is exact: a kink of g stays the end of its pieces."""
    total = s + offset
    back = total - s
    lost = (s - (total - back)) + (offset - back)  # the exact error of the sum
    low = np.where(lost < 0, np.nextafter(total, -np.inf), total)
    return Interval(low, np.where(lost > 0, np.nextafter(total, np.inf), total))
