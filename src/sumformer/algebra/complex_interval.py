"""Rectangles in the complex plane: z = x + iy with x ∈ re, y ∈ im, and every operation rounded outward.

An imaginary part that is exactly {0} stays so wherever the operation is real on the reals, and such entries are
computed by the real intervals. On a box with one coordinate in a rectangle of positive height, a subexpression with
im = {0} is real-valued and analytic, hence constant in that coordinate: treating it as a real number is sound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from sumformer.algebra import interval as real
from sumformer.algebra.interval import Interval, Number
from sumformer.algebra.interval_functions import hypot
from sumformer.algebra.rounding import BoolArray, FloatArray, down, libm_down, libm_up, up


@final
class ComplexInterval:
    """re + i · im, of one shape."""

    __array_ufunc__ = None
    __slots__ = ("im", "re")

    re: Interval
    im: Interval

    def __init__(self, re: Interval, im: Interval) -> None:
        shape = np.broadcast_shapes(re.shape, im.shape)
        self.re = re if re.shape == shape else re.broadcast_to(shape)
        self.im = im if im.shape == shape else im.broadcast_to(shape)

    @staticmethod
    def from_real(re: Interval) -> ComplexInterval:
        """x + 0i, exactly real."""
        return ComplexInterval(re, Interval.point(np.zeros(re.shape)))

    @staticmethod
    def from_fraction(value: Fraction | int) -> ComplexInterval:
        return ComplexInterval.from_real(Interval.from_fraction(value))

    @staticmethod
    def lift(value: ComplexInterval | Interval | Number | FloatArray) -> ComplexInterval:
        return value if isinstance(value, ComplexInterval) else ComplexInterval.from_real(Interval.lift(value))

    def __repr__(self) -> str:
        return f"ComplexInterval({self.re} + i {self.im})"

    # ---- arithmetic

    def __neg__(self) -> ComplexInterval:
        return ComplexInterval(-self.re, -self.im)

    def __add__(self, other: ComplexInterval | Interval | Number) -> ComplexInterval:
        b = ComplexInterval.lift(other)
        return ComplexInterval(self.re + b.re, self.im + b.im)

    def __sub__(self, other: ComplexInterval | Interval | Number) -> ComplexInterval:
        return self + (-ComplexInterval.lift(other))

    def __mul__(self, other: ComplexInterval | Interval | Number) -> ComplexInterval:
        b = ComplexInterval.lift(other)
        return ComplexInterval(self.re * b.re - self.im * b.im, self.re * b.im + self.im * b.re)

    def __truediv__(self, other: ComplexInterval | Interval | Number) -> ComplexInterval:
        b = ComplexInterval.lift(other)
        return branch(
            b.is_real,
            lambda: ComplexInterval(self.re / b.re, self.im / b.re),
            lambda: self * b.reciprocal(),
        )

    def __radd__(self, other: Interval | Number) -> ComplexInterval:
        return self + other

    def __rsub__(self, other: Interval | Number) -> ComplexInterval:
        return ComplexInterval.lift(other) - self

    def __rmul__(self, other: Interval | Number) -> ComplexInterval:
        return self * other

    def __rtruediv__(self, other: Interval | Number) -> ComplexInterval:
        return ComplexInterval.lift(other) / self

    def square(self) -> ComplexInterval:
        """z² = (x² − y²) + 2xy i, each part the exact hull up to rounding."""
        return ComplexInterval(self.re.square() - self.im.square(), 2 * (self.re * self.im))

    def reciprocal(self) -> ComplexInterval:
        """1/z = x/(x² + y²) − i y/(x² + y²), the exact hull up to rounding; undefined where z may be 0."""
        defined = self.defined & ~self.contains(0.0)
        re, im = _inversion(self.re, abs(self.im)), _inversion(self.im, abs(self.re))
        return ComplexInterval(
            Interval.sealed(re.lo, re.hi, defined),
            Interval.sealed(-im.hi, -im.lo, defined),
        )

    def __pow__(self, k: int) -> ComplexInterval:
        """zᵏ by repeated squaring; real entries by the real power, which is tight."""
        if k < 0:
            return 1 / self ** (-k)
        return branch(self.is_real, lambda: ComplexInterval.from_real(self.re**k), lambda: self._power(k))

    def _power(self, k: int) -> ComplexInterval:
        if k == 0:
            return ComplexInterval.from_real(Interval.sealed(np.ones(self.shape), np.ones(self.shape), self.defined))
        if k == 1:
            return self
        even = self._power(k // 2).square()
        return even * self if k % 2 else even

    # ---- sets

    @property
    def defined(self) -> BoolArray:
        return self.re.defined & self.im.defined

    @property
    def is_real(self) -> BoolArray:
        """Where the imaginary part is exactly {0}."""
        return self.im.is_zero

    @property
    def touches_cut(self) -> BoolArray:
        """Where the rectangle meets (−∞, 0], on which log and √ are not analytic."""
        return (self.re.lo <= 0) & self.im.contains(0.0)

    def contains(self, value: ArrayLike) -> BoolArray:
        return self.re.contains(np.real(value)) & self.im.contains(np.imag(value))

    def hull(self, other: ComplexInterval) -> ComplexInterval:
        return ComplexInterval(self.re.hull(other.re), self.im.hull(other.im))

    def intersect(self, other: ComplexInterval) -> ComplexInterval:
        return ComplexInterval(self.re.intersect(other.re), self.im.intersect(other.im))

    def modulus(self) -> Interval:
        """|z|."""
        return hypot(self.re, self.im)

    def abs_upper(self) -> FloatArray:
        """An upper bound of |z| over the rectangle; ∞ where undefined."""
        return self.modulus().hi

    def width(self) -> FloatArray:
        """The longer side, rounded up."""
        return np.asarray(np.maximum(self.re.width(), self.im.width()))

    # ---- arrays

    @property
    def shape(self) -> tuple[int, ...]:
        return self.re.shape

    def __getitem__(self, index: Any) -> ComplexInterval:
        return ComplexInterval(self.re[index], self.im[index])

    def broadcast_to(self, shape: tuple[int, ...]) -> ComplexInterval:
        return ComplexInterval(self.re.broadcast_to(shape), self.im.broadcast_to(shape))

    def sum(self) -> ComplexInterval:
        """Σ over the last axis."""
        return ComplexInterval(self.re.sum(), self.im.sum())


def concatenate(parts: Sequence[ComplexInterval]) -> ComplexInterval:
    """Join along the last axis; the leading axes broadcast."""
    return ComplexInterval(real.concatenate([p.re for p in parts]), real.concatenate([p.im for p in parts]))


def select(where: BoolArray, a: ComplexInterval, b: ComplexInterval) -> ComplexInterval:
    """a where `where`, else b."""
    return ComplexInterval(real.select(where, a.re, b.re), real.select(where, a.im, b.im))


def branch(where: BoolArray, yes: Callable[[], ComplexInterval], no: Callable[[], ComplexInterval]) -> ComplexInterval:
    """yes() where `where`, else no(); neither is computed in vain."""
    if bool(where.all()):
        return yes()
    return select(where, yes(), no()) if bool(where.any()) else no()


def _inversion(x: Interval, v: Interval) -> Interval:
    """{x / (x² + v²)} over the box, v ≥ 0, (0, 0) not inside."""
    return Interval.sealed(-_inversion_upper(-x, v), _inversion_upper(x, v), x.defined & v.defined)


def _inversion_upper(x: Interval, v: Interval) -> FloatArray:
    """max of x / (x² + v²). Write h(t, v) = t / (t² + v²) for t ≥ 0, v ≥ 0.

    ∂h/∂v = −2tv/(…)² ≤ 0 and ∂h/∂t = (v² − t²)/(…)²: h falls in v, and in t it rises up to t = v, then falls.
    If x may be > 0, the maximum is h(t, v.lo) with t the point of [max(x.lo, 0), x.hi] nearest to v.lo.
    If x ≤ 0 throughout, it is −min h(−x, v), a minimum taken at v.hi and at an end of [−x.hi, −x.lo].
    """
    positive = x.hi > 0
    peak = np.clip(v.lo, np.maximum(x.lo, 0.0), np.maximum(x.hi, 0.0))
    height = np.where(positive, v.lo, v.hi)
    near_lo, near_hi = _point_inversion(np.where(positive, peak, -x.hi), height)
    far_lo, _ = _point_inversion(np.where(positive, peak, -x.lo), height)
    return np.asarray(np.where(positive, near_hi, -np.minimum(near_lo, far_lo)))


def _point_inversion(t: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds of t / (t² + v²) for floats t, v ≥ 0; only the lower one, 0, is known where one of them is ∞."""
    finite = np.isfinite(t) & np.isfinite(v)
    t, v = np.where(finite, t, 0.0), np.where(finite, v, 1.0)
    # Scaled by 2ˢ the larger of the two lies in [1/2, 1), so t² + v² ∈ [1/4, 2) has a relative error ≤ 3 · 2⁻⁵³ and
    # the quotient ≤ 5 · 2⁻⁵³ plus a subnormal's error in t and in itself (≤ 5 · 2⁻¹⁰⁷⁴): the libm widening covers both.
    _, s = np.frexp(np.maximum(t, v))
    with np.errstate(all="ignore"):
        a, b = np.ldexp(t, -s), np.ldexp(v, -s)
        scaled = a / (a * a + b * b)
        lo = np.maximum(down(np.ldexp(libm_down(scaled), -s)), 0.0)
        hi = np.where(t == 0, 0.0, up(np.ldexp(libm_up(scaled), -s)))
    return np.where(finite, lo, 0.0), np.where(finite, hi, np.inf)
