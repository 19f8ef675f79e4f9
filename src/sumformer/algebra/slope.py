"""A value over boxes with its slopes: v ∈ `value`, generalised ∂v/∂t_k ∈ `gradient`, Σ_k ω_k |∂v/∂t_k| ≤ `length`.

Forward differentiation in intervals. Where v has a corner (abs, min, max, norm at 0), `gradient` encloses Clarke's
generalised gradient, whose chain rule and mean value theorem make `length` a Lipschitz constant on each box. `length`
is kept apart from `gradient`, and the smaller of the two bounds wins: for max(t_1, …, t_n) it is max ω_k, while every
component of the gradient ranges over [0, 1] and their sum would be n.
Lengths are non-negative and computed in float64, each result inflated by 1 + 2⁻⁴⁰.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sumformer.algebra import interval, interval_functions
from sumformer.algebra.interval import Interval
from sumformer.algebra.interval_operations import Extremum, IntervalOperations
from sumformer.algebra.rounding import FloatArray
from sumformer.algebra.tracked import INFLATE

LEAST: Final = 2.0**-1022
"""A product of positive bounds is at least this, so that none underflows to 0."""


@dataclass(frozen=True, eq=False)
class Slope:
    """`value` and `length` of shape (…, width), `gradient` of shape (…, width, variables)."""

    value: Interval
    gradient: Interval
    length: FloatArray


class SlopeOperations:
    """The arithmetic of slopes; `weights` = ω (…, variables) ≥ 0, one row for each box.

    `reasons` collects why a slope is not bounded on some box.
    """

    def __init__(self, weights: FloatArray) -> None:
        self.weights = weights
        self.exact = IntervalOperations()
        self.reasons: dict[str, None] = {}

    def variable(self, value: Interval, where: Sequence[int] | None, lengths: FloatArray | float) -> Slope:
        """A vector whose component c is the variable `where[c]`; a constant without `where`."""
        width, count = value.shape[-1], self.weights.shape[-1]
        unit = np.zeros((width, count))
        if where is not None:
            unit[np.arange(width), list(where)] = 1.0
        return Slope(value, Interval.point(unit), np.broadcast_to(lengths, value.shape))

    def const(self, value: Fraction) -> Slope:
        return self.variable(self.exact.const(value), None, 0.0)

    def add(self, a: Slope, b: Slope) -> Slope:
        return self.made(a.value + b.value, a.gradient + b.gradient, a.length + b.length)

    def sub(self, a: Slope, b: Slope) -> Slope:
        return self.made(a.value - b.value, a.gradient - b.gradient, a.length + b.length)

    def neg(self, a: Slope) -> Slope:
        return Slope(-a.value, -a.gradient, a.length)

    def mul(self, a: Slope, b: Slope) -> Slope:
        if a is b:
            return self.power(a, 2)
        gradient = _wide(a.value) * b.gradient + _wide(b.value) * a.gradient
        length = times(a.value.abs_upper(), b.length) + times(b.value.abs_upper(), a.length)
        return self.made(a.value * b.value, gradient, length)

    def div(self, a: Slope, b: Slope) -> Slope:
        """d(a/b) = (da − (a/b) db)/b."""
        value = a.value / b.value
        if not bool(value.defined.all()):
            self.reasons["a denominator may vanish"] = None
        gradient = (a.gradient - _wide(value) * b.gradient) / _wide(b.value)
        with np.errstate(all="ignore"):
            least = np.maximum(b.value.lo, -b.value.hi)
            above = a.length + times(value.abs_upper(), b.length)
            length = np.where(above == 0, 0.0, np.maximum(above / least, LEAST))
            length = np.where(least > 0, length, np.inf)
        return self.made(value, gradient, length)

    def power(self, a: Slope, k: int) -> Slope:
        if k == 0:
            return self.variable(a.value**0, None, 0.0)
        slope = k * a.value ** (k - 1)
        if not bool(slope.defined.all()):
            self.reasons["a negative power of what may vanish"] = None
        return self._chain(a.value**k, slope, a)

    def unary(self, fn: str, a: Slope) -> Slope:
        value = self.exact.unary(fn, a.value)
        slope = _DERIVATIVES[fn](a.value, value)
        if not bool((slope.defined & np.isfinite(slope.abs_upper())).all()):
            self.reasons[_UNBOUNDED.get(fn, f"the slope of {fn} may overflow")] = None
        return self._chain(value, slope, a)

    def extremum(self, op: Extremum, a: Slope, b: Slope) -> Slope:
        """The larger (smaller) one's slope; where either may be it, any mixture of the two."""
        value = self.exact.extremum(op, a.value, b.value)
        first, second = (a, b) if op == "max" else (self.neg(a), self.neg(b))
        only_a, only_b = first.value.lo > second.value.hi, second.value.lo > first.value.hi
        mixed = a.gradient.hull(b.gradient)
        gradient = interval.select(only_a[..., None], a.gradient, interval.select(only_b[..., None], b.gradient, mixed))
        length = np.where(only_a, a.length, np.where(only_b, b.length, np.maximum(a.length, b.length)))
        return self.made(value, gradient, length)

    def cat(self, parts: Sequence[Slope]) -> Slope:
        value = interval.concatenate([p.value for p in parts])
        count = self.weights.shape[-1]
        batch = np.broadcast_shapes(value.shape[:-1], *(p.length.shape[:-1] for p in parts))
        wide = [p.gradient.broadcast_to((*batch, p.value.shape[-1], count)) for p in parts]
        joined = (np.concatenate([getattr(g, end) for g in wide], axis=-2) for end in ("lo", "hi", "defined"))
        lengths = [np.broadcast_to(p.length, (*batch, p.value.shape[-1])) for p in parts]
        return Slope(value, Interval.sealed(*joined), np.concatenate(lengths, axis=-1))

    def slice(self, a: Slope, start: int, stop: int) -> Slope:
        return Slope(a.value[..., start:stop], a.gradient[..., start:stop, :], a.length[..., start:stop])

    def total(self, a: Slope) -> Slope:
        summed = Interval.sealed(*(np.moveaxis(getattr(a.gradient, end), -2, -1) for end in ("lo", "hi", "defined")))
        return self.made(self.exact.total(a.value), summed.sum()[..., None, :], a.length.sum(-1, keepdims=True))

    def dot(self, a: Slope, b: Slope) -> Slope:
        return self.norm2(a) if a is b else self.total(self.mul(a, b))

    def norm2(self, a: Slope) -> Slope:
        return self.total(self.power(a, 2))

    def norm(self, a: Slope) -> Slope:
        """d‖v‖ = Σ_c u_c dv_c with u = v/‖v‖, or any ‖u‖ ≤ 1 at 0: so the length is at most √Σ_c length_c²."""
        if a.value.shape[-1] == 1:
            return self.unary("abs", a)
        value = self.exact.norm(a.value)
        with np.errstate(all="ignore"):
            direction = (a.value / value).intersect(_between(-1.0, 1.0, a.value.shape))
        sure = (value.lo > 0) & direction.defined
        direction = interval.select(sure, direction, _between(-1.0, 1.0, a.value.shape))
        product = _wide(direction) * a.gradient
        summed = Interval.sealed(*(np.moveaxis(getattr(product, end), -2, -1) for end in ("lo", "hi", "defined")))
        by_direction = times(direction.abs_upper(), a.length).sum(-1, keepdims=True)
        return self.made(value, summed.sum()[..., None, :], np.minimum(by_direction, _euclidean(a.length)))

    def _chain(self, value: Interval, slope: Interval, a: Slope) -> Slope:
        return self.made(value, _wide(slope) * a.gradient, times(slope.abs_upper(), a.length))

    def made(self, value: Interval, gradient: Interval, length: FloatArray) -> Slope:
        """The smaller of the two bounds on the length; ∞ where the value itself may not exist."""
        direct = times(gradient.abs_upper(), self.weights[..., None, :]).sum(-1)
        with np.errstate(invalid="ignore"):
            least = np.fmin(length, direct) * INFLATE
        exists = value.defined & np.isfinite(value.abs_upper())
        return Slope(value, gradient, np.where(exists, least, np.inf))


def times(a: FloatArray, b: FloatArray) -> FloatArray:
    """a·b of bounds: nothing times anything is nothing, else an unbounded factor leaves it unbounded."""
    with np.errstate(all="ignore"):
        return np.asarray(np.where((a == 0) | (b == 0), 0.0, np.maximum(a * b, LEAST)))


def _euclidean(lengths: FloatArray) -> FloatArray:
    """√Σ_c l_c², of width 1, scaled so that nothing underflows."""
    largest = lengths.max(-1, keepdims=True)
    with np.errstate(all="ignore"):
        ratio = np.where(largest > 0, lengths / largest, 0.0)
        ratio = np.where(np.isfinite(largest), ratio, 1.0)
        return np.asarray(times(largest, np.sqrt((ratio**2).sum(-1, keepdims=True))))


def _wide(value: Interval) -> Interval:
    """(…, width) → (…, width, 1): a factor of a gradient."""
    return value[..., None]


def _between(lo: float, hi: float, shape: tuple[int, ...]) -> Interval:
    return Interval(np.full(shape, lo), np.full(shape, hi))


def _sign(x: Interval, value: Interval) -> Interval:
    """{−1}, {1}, or [−1, 1] where both signs, or 0 alone, may occur."""
    up, down = (x.lo >= 0) & (x.hi > 0), (x.hi <= 0) & (x.lo < 0)
    return Interval.sealed(np.where(up, 1.0, -1.0), np.where(down, -1.0, 1.0), x.defined)


_DERIVATIVES: Final[dict[str, Callable[[Interval, Interval], Interval]]] = {
    "exp": lambda x, value: value,
    "log": lambda x, value: interval.select(value.defined, 1 / x, value),
    "sqrt": lambda x, value: 1 / (2 * value),
    "sin": lambda x, value: interval_functions.cos(x),
    "cos": lambda x, value: -interval_functions.sin(x),
    "tanh": lambda x, value: (1 - value.square()).maximum(0.0),
    "sigmoid": lambda x, value: _logistic_slope(value),
    "abs": _sign,
}
_UNBOUNDED: Final = {
    "sqrt": "sqrt is infinitely steep at 0, which its argument may reach: norm(v) is the Lipschitz form of √Σ v_c²",
    "log": "log of what may reach 0",
    "exp": "exp may overflow",
}


def _logistic_slope(s: Interval) -> Interval:
    """s(1 − s), increasing up to s = ½ and decreasing after it."""
    ends = s * (1 - s)
    low, high = (np.clip(end, 0.0, 1.0) for end in (s.lo, s.hi))  # what is not defined may be anything
    at_low, at_high = (Interval.point(e) * (1 - Interval.point(e)) for e in (low, high))
    crest = (low <= 0.5) & (high >= 0.5)
    hi = np.where(crest, 0.25, np.maximum(at_low.hi, at_high.hi))
    lo = np.maximum(np.minimum(at_low.lo, at_high.lo), 0.0)
    return Interval.sealed(lo, hi, ends.defined)
