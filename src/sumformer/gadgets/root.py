"""√max(t, 0) ≈ P(t) for t ≤ hi, also where t may fall below 0: P(t_k) = p_k + δ,  t_k = p_k²,  p_k = 4δ k(k + 1).

On [p², q²] the root is above its chord by at most (q − p)²/4(p + q), which is 2δ on every piece: so |√t − P| ≤ δ. Left
of 0 P is δ, the root 0. Some hi^{1/4}/(2√δ) units. An argument that errs by e moves the root by
  modulus(lo, e) = min(√e,  e/(√lo + √max(lo − e, 0))),  lo the least it should be.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, sqrt

import numpy as np

from sumformer.algebra.interval import Interval
from sumformer.algebra.interval_functions import sqrt as interval_sqrt
from sumformer.errors import DomainError, RefusedError
from sumformer.gadgets.chebyshev import X
from sumformer.gadgets.function import MAX_KNOTS
from sumformer.gadgets.piecewise_linear import PiecewiseLinear, through
from sumformer.gadgets.reading import Reading
from sumformer.gadgets.units import Gadget, units_of
from sumformer.targets import Const, Extremum, Unary

ROOT = Unary("sqrt", Extremum("max", X, Const(Fraction(0))))
_UP = 1 + 2.0**-40


def modulus(lo: float, e: float) -> float:
    """sup |√max(t, 0) − √max(s, 0)| over t ≥ lo, |t − s| ≤ e."""
    if e <= 0 or lo <= 0:
        return sqrt(max(e, 0.0)) * _UP
    return min(sqrt(e), e / (sqrt(lo) + sqrt(max(lo - e, 0.0)))) * _UP


@dataclass(frozen=True)
class RootShape:
    """What is known of the root on [lo, hi] before it is built."""

    lo: float
    hi: float

    @property
    def range(self) -> tuple[float, float]:
        return sqrt(max(self.lo, 0.0)) / _UP, sqrt(max(self.hi, 0.0)) * _UP

    def knots_at(self, tolerance: float) -> float:
        return sqrt(sqrt(max(self.hi, 0.0))) / (2 * sqrt(tolerance))

    def slope(self, scale: float) -> float:
        """modulus(lo, e)/e at the e with modulus √e = `scale`."""
        return modulus(self.lo, scale**2) / scale**2


def root(t: Reading, place: str, tolerance: float) -> Gadget:
    """√max(t, 0) for t ≤ t.hi, within the tolerance but for rounding of the weights; `error` has that too."""
    if not (0 < t.hi < inf and tolerance > 0):
        raise DomainError(f"expected 0 < hi and a tolerance > 0, got hi = {t.hi} and {tolerance}")
    top = sqrt(t.hi)
    count = max(1, ceil((sqrt(1 + top / tolerance) - 1) / 2 * (1 - 1e-12)))
    if count > MAX_KNOTS:
        raise RefusedError(f"√ on [0, {t.hi:.3g}] to {tolerance:.2g} would take {count:.3g} hidden units")
    k = np.arange(count + 1.0)
    roots = top * (k * (k + 1)) / (count * (count + 1))
    delta = top / (4 * count * (count + 1))
    ends = roots**2
    ends[-1] = t.hi
    p = through(ends, roots + delta)
    return Gadget("root", ((units_of(t, {place: p}),),), _gap(p, t.hi))


def _gap(p: PiecewiseLinear, hi: float) -> float:
    """sup |√max(t, 0) − P| for t ≤ hi, proved of the weights as they are; knot_0 = 0."""
    ends, values = p.at_knots(hi)
    roots = interval_sqrt(Interval.point(ends))
    difference = values - roots
    step = Interval.point(roots.hi[1:]) - Interval.point(roots.lo[:-1])
    around = Interval.point(roots.lo[:-1]) + Interval.point(roots.hi[1:])
    bump = (step.square() / (4.0 * around)).hi
    above = float(difference.hi.max())
    low = np.minimum(difference.lo[:-1], difference.lo[1:]) - bump
    return max(above, float(-low.min()), abs(p.start)) * _UP
