"""What an expression tree needs to be evaluated on boxes: one adapter for real intervals, one for rectangles.

Values carry their components on the last axis; width 1 broadcasts; the leading axes are the batch of boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Generic, Literal, TypeVar

import numpy as np

from sumformer.algebra import complex_functions, complex_interval, interval, interval_functions
from sumformer.algebra.complex_functions import continued_sqrt
from sumformer.algebra.complex_interval import ComplexInterval
from sumformer.algebra.interval import Interval

Extremum = Literal["min", "max"]
T = TypeVar("T", Interval, ComplexInterval)


class BoxOperations(Generic[T]):
    """Both kinds of boxes, by their operators.

    `a is b` means the same number twice: mul(a, a) is a square and dot(a, a) is norm2(a). Two variables that range over
    one box must therefore be two objects.
    """

    def add(self, a: T, b: T) -> T:
        return a + b

    def sub(self, a: T, b: T) -> T:
        return a - b

    def mul(self, a: T, b: T) -> T:
        return a.square() if a is b else a * b

    def div(self, a: T, b: T) -> T:
        return a / b

    def neg(self, a: T) -> T:
        return -a

    def power(self, a: T, k: int) -> T:
        return a**k

    def slice(self, a: T, start: int, stop: int) -> T:
        return a[..., start:stop]

    def dot(self, a: T, b: T) -> T:
        return self.total(self.mul(a, b))

    def norm2(self, a: T) -> T:
        """Σ a_c²."""
        return self.total(a.square())

    def total(self, a: T) -> T:
        """Σ a_c, of width 1."""
        return a.sum()[..., None]


class IntervalOperations(BoxOperations[Interval]):
    """Real intervals."""

    def const(self, value: Fraction) -> Interval:
        return Interval.from_fraction(value)[None]

    def unary(self, fn: str, a: Interval) -> Interval:
        return interval_functions.UNARY[fn](a)

    def extremum(self, op: Extremum, a: Interval, b: Interval) -> Interval:
        return a.minimum(b) if op == "min" else a.maximum(b)

    def cat(self, parts: Sequence[Interval]) -> Interval:
        return interval.concatenate(parts)

    def norm(self, a: Interval) -> Interval:
        """√Σ a_c²."""
        return abs(a) if a.shape[-1] == 1 else interval_functions.sqrt(self.norm2(a))


class ComplexIntervalOperations(BoxOperations[ComplexInterval]):
    """Complex rectangles: norm2 and dot are bilinear (no conjugate), as the analytic continuation requires."""

    def const(self, value: Fraction) -> ComplexInterval:
        return ComplexInterval.from_fraction(value)[None]

    def unary(self, fn: str, a: ComplexInterval) -> ComplexInterval:
        return complex_functions.UNARY[fn](a)

    def extremum(self, op: Extremum, a: ComplexInterval, b: ComplexInterval) -> ComplexInterval:
        return complex_functions.minimum(a, b) if op == "min" else complex_functions.maximum(a, b)

    def cat(self, parts: Sequence[ComplexInterval]) -> ComplexInterval:
        return complex_interval.concatenate(parts)

    def norm(self, a: ComplexInterval) -> ComplexInterval:
        """√Σ x_c² of real entries, and its continuation √Σ z_c² off the cut."""
        is_real = np.asarray(a.is_real.all(axis=-1, keepdims=True))
        return complex_interval.branch(
            is_real,
            lambda: ComplexInterval.from_real(IntervalOperations().norm(a.re)),
            lambda: complex_functions.absolute(a) if a.shape[-1] == 1 else continued_sqrt(self.norm2(a)),
        )
