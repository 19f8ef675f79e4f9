"""A value on cells with its slopes: v ∈ `value`, ∂v/∂t_k ∈ `gradient`, and |v − v'| ≤ `length` when all variables move.

At corners of abs, min, max and norm the gradient is a hull of the branches': along a segment the derivative exists
almost everywhere and lies in it. `length` is carried by its own rules beside Σ_k ω_k |gradient_k|; the smaller wins.
Lengths are sums and products of numbers ≥ 0 in float64, inflated by 1 + 2⁻⁴⁰ after each operation.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, from_fraction

_REAL = IntervalOperations()
_ZERO, _ONE = (from_fraction(Fraction(k)) for k in (0, 1))
GROW = 1 + 2.0**-40


@dataclass(frozen=True, slots=True)
class Slope:
    """value and length of shape (cells,) or (); gradient with one more axis, the variables."""

    value: Interval
    gradient: Interval
    length: Floats


class SlopeOperations:
    """The arithmetic of the tree on slopes; `bad` collects the cells where a value or a slope may not exist."""

    def __init__(self, count: int, weights: Floats) -> None:
        self.bad: NDArray[np.bool_] = np.zeros(count, dtype=bool)
        self.weights = weights  # ω, (variables,)

    def fixed(self, value: Interval) -> Slope:
        """What does not move."""
        zero = np.zeros(len(self.weights))
        return Slope(value, Interval(zero, zero), np.asarray(0.0))

    def made(self, value: Interval, gradient: Interval, length: Floats) -> Slope:
        direct = times(gradient.magnitude, self.weights).sum(axis=-1)
        return Slope(value, gradient, np.minimum(np.where(np.isnan(length), np.inf, length), direct) * GROW)

    def const(self, value: Fraction) -> Slope:
        return self.fixed(from_fraction(value))

    def add(self, a: Slope, b: Slope) -> Slope:
        return self.made(_REAL.add(a.value, b.value), _REAL.add(a.gradient, b.gradient), a.length + b.length)

    def sub(self, a: Slope, b: Slope) -> Slope:
        if a is b:
            return self.const(Fraction(0))
        return self.made(_REAL.sub(a.value, b.value), _REAL.sub(a.gradient, b.gradient), a.length + b.length)

    def neg(self, a: Slope) -> Slope:
        return Slope(_REAL.neg(a.value), _REAL.neg(a.gradient), a.length)

    def mul(self, a: Slope, b: Slope) -> Slope:
        if a is b:
            return self.power(a, 2)
        gradient = _REAL.add(scaled(a.value, b.gradient), scaled(b.value, a.gradient))
        length = times(a.value.magnitude, b.length) + times(b.value.magnitude, a.length)
        return self.made(_REAL.mul(a.value, b.value), gradient, length)

    def div(self, a: Slope, b: Slope) -> Slope:
        """d(a/b) = (da − (a/b) db)/b."""
        below = self._where((b.value.lo <= 0) & (b.value.hi >= 0), b.value)
        value, inverse = _REAL.div(a.value, below), _REAL.div(_ONE, below)
        gradient = scaled(inverse, _REAL.sub(a.gradient, scaled(value, b.gradient)))
        return self.made(value, gradient, times(inverse.magnitude, a.length + times(value.magnitude, b.length)))

    def power(self, v: Slope, k: int) -> Slope:
        if k == 0:
            return self.const(Fraction(1))
        base = v.value if k > 0 else self._where((v.value.lo <= 0) & (v.value.hi >= 0), v.value)
        slope = _REAL.mul(from_fraction(Fraction(k)), _REAL.power(base, k - 1))
        return self._chain(_REAL.power(base, k), slope, v)

    def total(self, values: list[Slope]) -> Slope:
        result = values[0]
        for value in values[1:]:
            result = self.add(result, value)
        return result

    def norm(self, values: list[Slope]) -> Slope:
        """d‖v‖ = Σ_c u_c dv_c, |u| ≤ 1: length ≤ √Σ length_c²."""
        if len(values) == 1:
            return self.function("abs", values[0])
        value = _REAL.norm([v.value for v in values])
        away = value.lo > 0
        size = Interval(np.where(away, value.lo, 1.0), np.where(away, value.hi, 1.0))
        gradient, length = self.fixed(_ZERO).gradient, np.asarray(0.0)
        for v in values:
            u = _REAL.div(v.value, size)
            u = Interval(np.where(away, np.maximum(u.lo, -1), -1.0), np.where(away, np.minimum(u.hi, 1), 1.0))
            gradient = _REAL.add(gradient, scaled(u, v.gradient))
            length = length + times(u.magnitude, v.length)
        euclidean = np.sqrt(sum((v.length**2 for v in values), np.asarray(0.0))) * GROW + 1e-150
        return self.made(value, gradient, np.minimum(length, euclidean))

    def extremum(self, op: str, a: Slope, b: Slope) -> Slope:
        first, second = (a.value, b.value) if op == "max" else (_REAL.neg(a.value), _REAL.neg(b.value))
        only_a, only_b = first.lo > second.hi, second.lo > first.hi
        hull = (np.minimum(a.gradient.lo, b.gradient.lo), np.maximum(a.gradient.hi, b.gradient.hi))
        one, two = only_a[..., None], only_b[..., None]
        ends = ((a.gradient.lo, b.gradient.lo, hull[0]), (a.gradient.hi, b.gradient.hi, hull[1]))
        gradient = Interval(*(np.where(one, left, np.where(two, right, both)) for left, right, both in ends))
        length = np.where(only_a, a.length, np.where(only_b, b.length, np.maximum(a.length, b.length)))
        return self.made(_REAL.extremum(op, a.value, b.value), gradient, length)

    def function(self, fn: str, v: Slope) -> Slope:
        x = v.value
        if fn in ("log", "sqrt"):
            x = self._where(x.lo <= 0, x)
        value = _REAL.function(fn, x)
        match fn:
            case "exp":
                slope = value
            case "log":
                slope = _REAL.div(_ONE, x)
            case "sqrt":
                low = self._where(~(value.lo > 0), value)
                slope = _REAL.div(_ONE, _REAL.add(low, low))
            case "sin":
                slope = _REAL.function("cos", x)
            case "cos":
                slope = _REAL.neg(_REAL.function("sin", x))
            case "tanh":
                slope = _REAL.sub(_ONE, _REAL.power(value, 2))
            case "sigmoid":
                slope = _logistic(value)
            case "abs":
                up, down = (x.lo >= 0) & (x.hi > 0), (x.hi <= 0) & (x.lo < 0)
                slope = Interval(np.where(up, 1.0, -1.0), np.where(down, -1.0, 1.0))
            case _:
                slope = Interval(np.asarray(-np.inf), np.asarray(np.inf))
        return self._chain(value, slope, v)

    def _chain(self, value: Interval, slope: Interval, v: Slope) -> Slope:
        return self.made(value, scaled(slope, v.gradient), times(slope.magnitude, v.length))

    def _where(self, wrong: NDArray[np.bool_], v: Interval) -> Interval:
        """Mark the wrong cells, and give them the harmless value 1."""
        self.bad = self.bad | wrong
        return Interval(np.where(wrong, 1.0, v.lo), np.where(wrong, 1.0, v.hi))


def _logistic(s: Interval) -> Interval:
    """s(1 − s), which rises up to s = 1/2 and falls beyond."""
    ends = [_REAL.mul(Interval(e, e), _REAL.sub(_ONE, Interval(e, e))) for e in (s.lo, s.hi)]
    top = np.where((s.lo <= 0.5) & (s.hi >= 0.5), 0.25, np.maximum(ends[0].hi, ends[1].hi))
    return Interval(np.minimum(ends[0].lo, ends[1].lo), top)


def scaled(v: Interval, gradient: Interval) -> Interval:
    """v·gradient; what does not move does not move, whatever v is."""
    wide = Interval(v.lo[..., None], v.hi[..., None])
    product = _REAL.mul(wide, gradient)
    still = (gradient.lo == 0) & (gradient.hi == 0)
    return Interval(np.where(still, 0.0, product.lo), np.where(still, 0.0, product.hi))


def times(a: Floats, b: Floats) -> Floats:
    """Of bounds ≥ 0: nothing times anything is nothing; what is not nothing does not underflow."""
    return np.where((a == 0) | (b == 0), 0.0, np.maximum(a * b, 2.0**-1022))
