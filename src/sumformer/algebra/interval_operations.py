"""What an expression tree needs to be evaluated on boxes: one adapter for real intervals, one for rectangles.

Values carry their components on the last axis; width 1 broadcasts; the leading axes are the batch of boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np

from sumformer.algebra import complex_functions, complex_interval, interval, interval_functions
from sumformer.algebra.complex_functions import continued_sqrt
from sumformer.algebra.complex_interval import ComplexInterval
from sumformer.algebra.interval import Interval

Extremum = Literal["min", "max"]


class IntervalOperations:
    """Real intervals.

    `a is b` means the same number twice: mul(a, a) is a square and dot(a, a) is norm2(a). Two variables that range over
    one box must therefore be two objects.
    """

    def const(self, value: Fraction) -> Interval:
        return Interval.from_fraction(value)[None]

    def add(self, a: Interval, b: Interval) -> Interval:
        return a + b

    def sub(self, a: Interval, b: Interval) -> Interval:
        return a - b

    def mul(self, a: Interval, b: Interval) -> Interval:
        return a.square() if a is b else a * b

    def div(self, a: Interval, b: Interval) -> Interval:
        return a / b

    def neg(self, a: Interval) -> Interval:
        return -a

    def power(self, a: Interval, k: int) -> Interval:
        return a**k

    def unary(self, fn: str, a: Interval) -> Interval:
        return interval_functions.UNARY[fn](a)

    def extremum(self, op: Extremum, a: Interval, b: Interval) -> Interval:
        return a.minimum(b) if op == "min" else a.maximum(b)

    def cat(self, parts: Sequence[Interval]) -> Interval:
        return interval.concatenate(parts)

    def slice(self, a: Interval, start: int, stop: int) -> Interval:
        return a[..., start:stop]

    def dot(self, a: Interval, b: Interval) -> Interval:
        return self.total(self.mul(a, b))

    def norm2(self, a: Interval) -> Interval:
        """Σ a_c²."""
        return self.total(a.square())

    def norm(self, a: Interval) -> Interval:
        """√Σ a_c²."""
        return abs(a) if a.shape[-1] == 1 else interval_functions.sqrt(self.norm2(a))

    def total(self, a: Interval) -> Interval:
        """Σ a_c, of width 1."""
        return a.sum()[..., None]


class ComplexIntervalOperations:
    """Complex rectangles: norm2 and dot are bilinear (no conjugate), as the analytic continuation requires."""

    def const(self, value: Fraction) -> ComplexInterval:
        return ComplexInterval.from_fraction(value)[None]

    def add(self, a: ComplexInterval, b: ComplexInterval) -> ComplexInterval:
        return a + b

    def sub(self, a: ComplexInterval, b: ComplexInterval) -> ComplexInterval:
        return a - b

    def mul(self, a: ComplexInterval, b: ComplexInterval) -> ComplexInterval:
        return a.square() if a is b else a * b

    def div(self, a: ComplexInterval, b: ComplexInterval) -> ComplexInterval:
        return a / b

    def neg(self, a: ComplexInterval) -> ComplexInterval:
        return -a

    def power(self, a: ComplexInterval, k: int) -> ComplexInterval:
        return a**k

    def unary(self, fn: str, a: ComplexInterval) -> ComplexInterval:
        return complex_functions.UNARY[fn](a)

    def extremum(self, op: Extremum, a: ComplexInterval, b: ComplexInterval) -> ComplexInterval:
        return complex_functions.minimum(a, b) if op == "min" else complex_functions.maximum(a, b)

    def cat(self, parts: Sequence[ComplexInterval]) -> ComplexInterval:
        return complex_interval.concatenate(parts)

    def slice(self, a: ComplexInterval, start: int, stop: int) -> ComplexInterval:
        return a[..., start:stop]

    def dot(self, a: ComplexInterval, b: ComplexInterval) -> ComplexInterval:
        return self.total(self.mul(a, b))

    def norm2(self, a: ComplexInterval) -> ComplexInterval:
        """Σ z_c²."""
        return self.total(a.square())

    def norm(self, a: ComplexInterval) -> ComplexInterval:
        """√Σ x_c² of real entries, and its continuation √Σ z_c² off the cut."""
        is_real = np.asarray(a.is_real.all(axis=-1, keepdims=True))
        return complex_interval.branch(
            is_real,
            lambda: ComplexInterval.from_real(IntervalOperations().norm(a.re)),
            lambda: complex_functions.absolute(a) if a.shape[-1] == 1 else continued_sqrt(self.norm2(a)),
        )

    def total(self, a: ComplexInterval) -> ComplexInterval:
        return a.sum()[..., None]
