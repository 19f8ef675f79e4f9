"""(g, g', g'') on arrays of intervals, for expressions in one variable; g'' may be unbounded.

(ab)'' = a''b + 2a'b' + ab'',   (F∘g)'' = F''(g) g'² + F'(g) g''.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np

from sumformer.certificates.checker.compiled.forms import INTERVALS as I
from sumformer.certificates.checker.interval import Interval
from sumformer.certificates.checker.tree_values import components
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.node import Node
from sumformer.targets.tree import Token


@dataclass(frozen=True, slots=True)
class Jet:
    value: Interval
    first: Interval
    second: Interval


def jet(g: Node, t: Interval) -> Jet:
    """g, g', g'' on every interval of t."""
    one, zero = np.ones(t.lo.shape), np.zeros(t.lo.shape)
    x = Jet(t, Interval(one, one), Interval(zero, zero))
    with np.errstate(all="ignore"):
        found = components(g, JetOperations(), lambda part: [x] if isinstance(part, Token) else None)[0]
    return Jet(*(part.broadcast_to(t.lo.shape) for part in (found.value, found.first, found.second)))


class JetOperations:
    """The arithmetic of jets, for `tree_values.components`."""

    def const(self, value: Fraction) -> Jet:
        zero = I.const(Fraction(0))
        return Jet(I.const(value), zero, zero)

    def add(self, a: Jet, b: Jet) -> Jet:
        return Jet(I.add(a.value, b.value), I.add(a.first, b.first), I.add(a.second, b.second))

    def neg(self, a: Jet) -> Jet:
        return Jet(I.neg(a.value), I.neg(a.first), I.neg(a.second))

    def sub(self, a: Jet, b: Jet) -> Jet:
        return self.add(a, self.neg(b))

    def mul(self, a: Jet, b: Jet) -> Jet:
        crossed = I.mul(_number(2), I.mul(a.first, b.first))
        ends = I.add(I.mul(a.second, b.value), I.mul(a.value, b.second))
        slope = I.add(I.mul(a.first, b.value), I.mul(a.value, b.first))
        return Jet(I.mul(a.value, b.value), slope, I.add(ends, crossed))

    def div(self, a: Jet, b: Jet) -> Jet:
        return self.mul(a, self.power(b, -1))

    def power(self, v: Jet, k: int) -> Jet:
        if k == 0:
            return self.const(Fraction(1))
        if k == 1:
            return v
        slope = I.mul(_number(k), I.power(v.value, k - 1))
        return _chain(v, I.power(v.value, k), slope, I.mul(_number(k * (k - 1)), I.power(v.value, k - 2)))

    def total(self, values: list[Jet]) -> Jet:
        return reduce(self.add, values)

    def norm(self, values: list[Jet]) -> Jet:
        return self.function("sqrt", self.total([self.power(v, 2) for v in values]))

    def extremum(self, op: str, a: Jet, b: Jet) -> Jet:
        """One of the two where it is sure, else a second derivative without bound."""
        above, below = (a, b) if op == "max" else (b, a)
        first = above.value.lo >= below.value.hi
        second = below.value.lo >= above.value.hi
        value = I.extremum(op, a.value, b.value)
        hull = Interval(np.minimum(a.first.lo, b.first.lo), np.maximum(a.first.hi, b.first.hi))
        wide = Interval(np.full(np.shape(value.lo), -np.inf), np.full(np.shape(value.lo), np.inf))
        return Jet(value, _pick(first, a.first, second, b.first, hull), _pick(first, a.second, second, b.second, wide))

    def function(self, fn: str, v: Jet) -> Jet:
        if fn == "abs":
            return self.extremum("max", v, self.neg(v))
        value, one = I.function(fn, v.value), _number(1)
        if fn == "exp":
            return _chain(v, value, value, value)
        if fn == "log":
            slope = I.div(one, v.value)
            return _chain(v, value, slope, I.neg(I.power(slope, 2)))
        if fn == "sqrt":  # 1/(2√v), −1/(4 v^{3/2}); without bound at 0
            half = Interval(np.nextafter(0.5 / value.hi, 0.0), np.nextafter(0.5 / value.lo, np.inf))
            return _chain(v, value, half, I.neg(I.mul(_number(2), I.power(half, 3))))
        if fn in ("sin", "cos"):
            slope = I.function("cos", v.value) if fn == "sin" else I.neg(I.function("sin", v.value))
            return _chain(v, value, slope, I.neg(value))
        if fn == "tanh":  # 1 − t², −2t(1 − t²)
            slope = I.sub(one, I.power(value, 2))
            return _chain(v, value, slope, I.neg(I.mul(_number(2), I.mul(value, slope))))
        if fn == "sigmoid":  # s(1 − s), s(1 − s)(1 − 2s)
            slope = I.mul(value, I.sub(one, value))
            return _chain(v, value, slope, I.mul(slope, I.sub(one, I.mul(_number(2), value))))
        raise Unproved(f"unknown function {fn}")


def _chain(v: Jet, value: Interval, slope: Interval, bend: Interval) -> Jet:
    second = I.add(I.mul(bend, I.power(v.first, 2)), I.mul(slope, v.second))
    return Jet(value, I.mul(slope, v.first), second)


def _number(k: int) -> Interval:
    return I.const(Fraction(k))


def _pick(first: np.ndarray, a: Interval, second: np.ndarray, b: Interval, rest: Interval) -> Interval:
    low = np.where(first, a.lo, np.where(second, b.lo, rest.lo))
    return Interval(low, np.where(first, a.hi, np.where(second, b.hi, rest.hi)))
