"""[lo, hi] ⊂ ℝ, an array of them at once: every operation rounds outward by `nextafter`.

+ − × ÷ and √ are IEEE operations, so one step outward encloses. Functions are evaluated in balls (python-flint) where
the array is small, else by numpy with 16u = 8 ulp added on either side; 4 ulp are an assumption the checker lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from sumformer.certificates.checker.verification import Unproved

Floats = NDArray[np.float64]
BALL_LIMIT = 5_000  # elements evaluated one by one in balls
ASSUMPTION = "numpy's exp, log, sin, cos and tanh err by at most 4 ulp where the checker evaluates large arrays"
_NUMPY_ERROR = 2.0**-49  # relative: 16u, of which sigmoid's three operations need 14u


@dataclass(frozen=True, slots=True)
class Interval:
    """lo ≤ value ≤ hi, element by element; infinite ends allowed."""

    lo: Floats
    hi: Floats

    @property
    def magnitude(self) -> Floats:
        return np.maximum(np.abs(self.lo), np.abs(self.hi))

    @property
    def mignitude(self) -> Floats:
        """min |v|, 0 where the interval contains 0."""
        return np.where((self.lo <= 0) & (self.hi >= 0), 0.0, np.minimum(np.abs(self.lo), np.abs(self.hi)))

    def broadcast_to(self, shape: tuple[int, ...]) -> Interval:
        return Interval(np.broadcast_to(self.lo, shape), np.broadcast_to(self.hi, shape))

    def hull(self, axes: tuple[int, ...]) -> Interval:
        """The union over `axes`, which keep length 1."""
        return Interval(self.lo.min(axis=axes, keepdims=True), self.hi.max(axis=axes, keepdims=True))


def meet(a: Interval, b: Interval) -> Interval:
    """Of two enclosures of one number."""
    return Interval(np.maximum(a.lo, b.lo), np.minimum(a.hi, b.hi))


def enclose(lo: Any, hi: Any) -> Interval:
    """One step outward; NaN (∞ − ∞, 0·∞) becomes unbounded."""
    lo, hi = np.nextafter(lo, -np.inf), np.nextafter(hi, np.inf)
    return Interval(np.where(np.isnan(lo), -np.inf, lo), np.where(np.isnan(hi), np.inf, hi))


def enclose_sum(lo: Any, more_lo: Any, hi: Any, more_hi: Any) -> Interval:
    """Both sums one step outward, but for those that are exact."""
    out = enclose(lo + more_lo, hi + more_hi)
    return Interval(
        np.where(_is_exact(lo, more_lo), lo + more_lo, out.lo), np.where(_is_exact(hi, more_hi), hi + more_hi, out.hi)
    )


def _is_exact(a: Any, b: Any) -> Any:
    """fl(a + b) = a + b: its rounding, which float64 holds, is 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        s = a + b
        part = s - a
        return (a - (s - part)) + (b - part) == 0.0


def from_fraction(value: Fraction) -> Interval:
    """A point, exactly where a float64 holds it."""
    if not isinstance(value, Fraction):  # a float would be taken for exact, whatever it was rounded from
        raise TypeError(f"expected a Fraction, got {value!r}")
    try:
        nearest = float(value)
    except OverflowError:
        raise Unproved("a constant exceeds the range of float64") from None
    point = np.float64(nearest)
    if Fraction(nearest) == value:
        return Interval(np.asarray(point), np.asarray(point))
    return enclose(point, point)


class IntervalOperations:
    """The arithmetic of the tree on intervals; a domain that is left is `Unproved`, never an unbounded value."""

    def const(self, value: Fraction) -> Interval:
        return from_fraction(value)

    def add(self, a: Interval, b: Interval) -> Interval:
        result = enclose_sum(a.lo, b.lo, a.hi, b.hi)
        return Interval(_not_below_zero(result.lo, (a.lo >= 0) & (b.lo >= 0)), result.hi)

    def sub(self, a: Interval, b: Interval) -> Interval:
        result = enclose_sum(a.lo, -b.hi, a.hi, -b.lo)
        return Interval(_not_below_zero(result.lo, a.lo >= b.hi), result.hi)

    def neg(self, a: Interval) -> Interval:
        return Interval(-a.hi, -a.lo)

    def mul(self, a: Interval, b: Interval) -> Interval:
        products = (a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi)
        return _signed(enclose(_fold(np.minimum, products), _fold(np.maximum, products)), a, b)

    def div(self, a: Interval, b: Interval) -> Interval:
        if bool(np.any((b.lo <= 0) & (b.hi >= 0))):
            raise Unproved("a denominator may vanish on the box")
        quotients = (a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi)
        return _signed(enclose(_fold(np.minimum, quotients), _fold(np.maximum, quotients)), a, b)

    def power(self, v: Interval, k: int) -> Interval:
        if k < 0:
            return self.div(from_fraction(Fraction(1)), self.power(v, -k))
        if k == 0:
            return from_fraction(Fraction(1))
        if k == 1:
            return v
        if k % 2 == 0:
            return _positive_power(Interval(v.mignitude, v.magnitude), k)
        low, high = (_positive_power(Interval(np.abs(end), np.abs(end)), k) for end in (v.lo, v.hi))
        return Interval(np.where(v.lo >= 0, low.lo, -low.hi), np.where(v.hi > 0, high.hi, -high.lo))

    def total(self, values: list[Interval]) -> Interval:
        return reduce(self.add, values)

    def norm(self, values: list[Interval]) -> Interval:
        return self.function("sqrt", self.total([self.power(v, 2) for v in values]))

    def extremum(self, op: str, a: Interval, b: Interval) -> Interval:
        pick = np.minimum if op == "min" else np.maximum
        return Interval(pick(a.lo, b.lo), pick(a.hi, b.hi))

    def function(self, fn: str, v: Interval) -> Interval:
        if fn == "abs":
            return Interval(v.mignitude, v.magnitude)
        if fn == "sqrt":
            if bool(np.any(v.lo < 0)):
                raise Unproved("sqrt of a value that may be negative on the box")
            root = enclose(np.sqrt(v.lo), np.sqrt(v.hi))
            return Interval(np.maximum(root.lo, 0), root.hi)
        if fn == "log" and bool(np.any(v.lo <= 0)):
            raise Unproved("log of a value that may not be positive on the box")
        if fn in ("sin", "cos"):
            return _wave(v, fn)
        low, high = _points(fn, v.lo)[0], _points(fn, v.hi)[1]
        floor, ceiling = {"exp": (0, np.inf), "tanh": (-1, 1), "sigmoid": (0, 1)}.get(fn, (-np.inf, np.inf))
        if fn in _FROM:  # rising, and known at one point
            start, least = _FROM[fn]
            low = np.where((v.lo >= start) & (low < least), least, low)
        return Interval(np.maximum(low, floor), np.minimum(high, ceiling))


_FROM = {"exp": (0.0, 1.0), "tanh": (0.0, 0.0), "sigmoid": (0.0, 0.5), "log": (1.0, 0.0)}


def _not_below_zero(lo: Floats, sure: NDArray[np.bool_]) -> Floats:
    """Sums of values ≥ 0 are ≥ 0, which the step outward would forget."""
    return np.where(sure & (lo < 0), 0.0, lo)


def _signed(result: Interval, a: Interval, b: Interval) -> Interval:
    """A product or quotient of two values ≥ 0, or of two ≤ 0, is ≥ 0; of one of each, ≤ 0: the step outward forgets."""
    above = ((a.lo >= 0) & (b.lo >= 0)) | ((a.hi <= 0) & (b.hi <= 0))
    below = ((a.lo >= 0) & (b.hi <= 0)) | ((a.hi <= 0) & (b.lo >= 0))
    return Interval(
        np.where(above & (result.lo < 0), 0.0, result.lo), np.where(below & (result.hi > 0), 0.0, result.hi)
    )


def _fold(pick: np.ufunc, values: tuple[Floats, ...]) -> Any:
    return reduce(pick, values)  # propagates NaN


def _positive_power(v: Interval, k: int) -> Interval:
    result = v
    for _ in range(k - 1):
        out = enclose(result.lo * v.lo, result.hi * v.hi)
        result = Interval(
            np.where(_is_short(result.lo, v.lo), result.lo * v.lo, np.maximum(out.lo, 0)),
            np.where(_is_short(result.hi, v.hi), result.hi * v.hi, out.hi),
        )
    return result


def _is_short(a: Any, b: Any) -> Any:
    """Finite numbers of 24 digits, the product of which float64 holds: those of float32."""
    with np.errstate(over="ignore"):
        short = (np.float64(np.float32(v)) == v for v in (a, b))
        return np.logical_and(*short) & np.isfinite(a) & np.isfinite(b)


def _wave(v: Interval, fn: str) -> Interval:
    """cos: −1 and 1 are taken at multiples of π; looked for with a slack of 1e-12, so never missed."""
    lo_pair, hi_pair = _points(fn, v.lo), _points(fn, v.hi)
    lo, hi = np.minimum(lo_pair[0], hi_pair[0]), np.maximum(lo_pair[1], hi_pair[1])
    shift = 0.0 if fn == "cos" else np.pi / 2
    slack = 1e-12 * (1 + v.magnitude)  # six roundings err by less than 1e-15 (2 + |v|)
    first, last = (v.lo - shift - slack) / (2 * np.pi), (v.hi - shift + slack) / (2 * np.pi)
    far = ~(v.magnitude < 2.0**30)
    top = far | (np.ceil(first) <= np.floor(last))
    bottom = far | (np.ceil(first - 0.5) <= np.floor(last - 0.5))
    return Interval(np.where(bottom, -1.0, np.maximum(lo, -1)), np.where(top, 1.0, np.minimum(hi, 1)))


def _points(fn: str, values: Floats) -> tuple[Floats, Floats]:
    """Lower and upper bounds of fn at each element."""
    values = np.asarray(values)
    distinct, place = np.unique(values, return_inverse=True)
    finite = np.isfinite(distinct)
    if len(distinct) > BALL_LIMIT or not bool(finite.all()):
        approximate = _numpy(fn, values)
        margin = np.abs(approximate) * _NUMPY_ERROR + 1e-300
        margin = np.where(np.isfinite(margin), margin, 0.0)
        result = enclose(approximate - margin, approximate + margin)
        return result.lo, result.hi
    balls = [_ball(fn, arb(float(value))) for value in distinct]
    result = enclose(
        np.array([float(b.lower()) for b in balls])[place].reshape(values.shape),
        np.array([float(b.upper()) for b in balls])[place].reshape(values.shape),
    )
    return result.lo, result.hi


def _ball(fn: str, v: arb) -> arb:
    return 1 / (1 + (-v).exp()) if fn == "sigmoid" else getattr(v, fn)()


def _numpy(fn: str, v: Floats) -> Floats:
    if fn == "sigmoid":  # e^−|t| ≤ 1: no overflow; 3 operations, covered with exp by the margin
        small = np.exp(-np.abs(v))
        return np.where(v >= 0, 1 / (1 + small), small / (1 + small))
    result: Floats = getattr(np, fn)(v)
    return result
