"""(g, g', g'') on intervals: second-order Taylor coefficients of a function of one variable, enclosed.

(g h)'' = g''h + 2g'h' + gh'',   (f∘g)' = f'(g) g',   (f∘g)'' = f''(g) g'² + f'(g) g''
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from sumformer.algebra import interval_functions as functions
from sumformer.algebra.interval import Interval
from sumformer.errors import DomainError


@dataclass(frozen=True, eq=False)
class Jet:
    """Enclosures of value, first and second derivative on each of a batch of intervals."""

    value: Interval
    first: Interval
    second: Interval

    @staticmethod
    def variable(t: Interval) -> Jet:
        """t itself: (t, 1, 0)."""
        return Jet(t, Interval.point(np.ones(t.shape)), Interval.point(np.zeros(t.shape)))


class JetOperations:
    """The arithmetic of jets; `abs`, `min` and `max` have no second derivative and are refused."""

    def const(self, value: Fraction) -> Jet:
        zero = Interval.from_fraction(0)
        return Jet(Interval.from_fraction(value), zero, zero)

    def add(self, a: Jet, b: Jet) -> Jet:
        return Jet(a.value + b.value, a.first + b.first, a.second + b.second)

    def sub(self, a: Jet, b: Jet) -> Jet:
        return self.add(a, self.neg(b))

    def neg(self, a: Jet) -> Jet:
        return Jet(-a.value, -a.first, -a.second)

    def mul(self, a: Jet, b: Jet) -> Jet:
        if a is b:
            return self.power(a, 2)
        second = a.second * b.value + 2 * (a.first * b.first) + a.value * b.second
        return Jet(a.value * b.value, a.first * b.value + a.value * b.first, second)

    def div(self, a: Jet, b: Jet) -> Jet:
        return self.mul(a, self.power(b, -1))

    def power(self, a: Jet, k: int) -> Jet:
        if k == 0:
            return self.const(Fraction(1))
        if k == 1:
            return a
        return _chain(a, a.value**k, k * a.value ** (k - 1), k * (k - 1) * a.value ** (k - 2))

    def unary(self, fn: str, a: Jet) -> Jet:
        v = a.value
        if fn == "exp":
            e = functions.exp(v)
            return _chain(a, e, e, e)
        if fn == "log":
            return _chain(a, functions.log(v), 1 / v, -(1 / v.square()))
        if fn == "sqrt":
            root = functions.sqrt(v)
            return _chain(a, root, 0.5 / root, -0.25 / (v * root))
        if fn == "sin":
            s, c = functions.sin(v), functions.cos(v)
            return _chain(a, s, c, -s)
        if fn == "cos":
            s, c = functions.sin(v), functions.cos(v)
            return _chain(a, c, -s, -c)
        if fn == "tanh":
            t = functions.tanh(v)
            slope = 1 - t.square()
            return _chain(a, t, slope, -2 * (t * slope))
        if fn == "sigmoid":
            s = functions.sigmoid(v)
            slope = s * (1 - s)
            return _chain(a, s, slope, slope * (1 - 2 * s))
        raise DomainError(f"{fn} has no second derivative", fn)

    def extremum(self, op: Literal["min", "max"], a: Jet, b: Jet) -> Jet:
        raise DomainError(f"{op} has no second derivative", op)

    def cat(self, values: Sequence[Jet]) -> Jet:
        return self._scalar(values[0], len(values))

    def slice(self, v: Jet, start: int, stop: int) -> Jet:
        return self._scalar(v, stop - start)

    def dot(self, a: Jet, b: Jet) -> Jet:
        return self.mul(a, b)

    def norm2(self, v: Jet) -> Jet:
        return self.power(v, 2)

    def norm(self, v: Jet) -> Jet:
        return self.unary("abs", v)

    def total(self, v: Jet) -> Jet:
        return v

    def _scalar(self, v: Jet, width: int) -> Jet:
        if width != 1:
            raise DomainError("a jet has one component")
        return v


def _chain(a: Jet, value: Interval, slope: Interval, bend: Interval) -> Jet:
    """f(a) from f, f' and f'' at a."""
    return Jet(value, slope * a.first, bend * a.first.square() + slope * a.second)
