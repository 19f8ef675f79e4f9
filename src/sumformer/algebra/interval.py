"""Real intervals with outward rounding: if x ∈ X and y ∈ Y, then x ∘ y ∈ X ∘ Y, whatever the rounding.

An `Interval` is an array of intervals [lo, hi]; operations broadcast. ±∞ as an end means "no bound known": the
numbers inside are finite, so 0 · [1, ∞] is {0}. Where an operation may leave its domain (a denominator that may
vanish, log of ≤ 0), nothing is raised, because bisection over a batch of boxes needs the rest: the entry becomes
[−∞, ∞] with `defined` False, and stays so through everything computed from it. `require_defined` raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike

from sumformer.algebra.rounding import MAX, BoolArray, FloatArray, down, fraction_bounds, up
from sumformer.errors import DomainError, InputError

Number = int | float | Fraction


@final
class Interval:
    """[lo, hi] entry by entry, lo < ∞ and hi > −∞; `defined` says where the expression so far has a value."""

    __array_ufunc__ = None  # ndarray + Interval is ours, not an array of objects
    __slots__ = ("defined", "hi", "lo")

    lo: FloatArray
    hi: FloatArray
    defined: BoolArray

    def __init__(self, lo: ArrayLike, hi: ArrayLike) -> None:
        low, high = np.broadcast_arrays(np.asarray(lo, dtype=np.float64), np.asarray(hi, dtype=np.float64))
        if not bool(np.all((low <= high) & (low < np.inf) & (high > -np.inf))):  # False for NaN as well
            raise InputError("Interval: expected lo <= hi with lo < inf and hi > -inf, no NaN")
        self.lo, self.hi, self.defined = low, high, np.ones(low.shape, dtype=np.bool_)

    @staticmethod
    def sealed(lo: ArrayLike, hi: ArrayLike, defined: ArrayLike) -> Interval:
        """The interval of a computation: undefined entries and NaN become [−∞, ∞]; an overflowed lo becomes MAX."""
        self = object.__new__(Interval)
        self.defined = np.asarray(defined)
        self.lo = np.asarray(np.where(self.defined & (lo == lo), np.minimum(lo, MAX), -np.inf))
        self.hi = np.asarray(np.where(self.defined & (hi == hi), np.maximum(hi, -MAX), np.inf))
        if self.defined.shape != self.lo.shape:
            self.defined = np.broadcast_to(self.defined, self.lo.shape)
        return self

    @staticmethod
    def point(value: ArrayLike) -> Interval:
        """[value, value], exactly."""
        return Interval(value, value)

    @staticmethod
    def from_fraction(value: Fraction | int) -> Interval:
        """The tightest interval of floats around an exact number, of shape ()."""
        return Interval(*fraction_bounds(value))

    @staticmethod
    def lift(value: Interval | Number | FloatArray) -> Interval:
        if isinstance(value, Interval):
            return value
        return Interval.from_fraction(value) if isinstance(value, int | Fraction) else Interval.point(value)

    def __repr__(self) -> str:
        undefined = int(self.defined.size - np.count_nonzero(self.defined))
        ends = f"[{self.lo}, {self.hi}]" if self.lo.size <= 8 else f"shape {self.shape}"
        return f"Interval({ends}{f', {undefined} undefined' if undefined else ''})"

    # ---- arithmetic

    def __neg__(self) -> Interval:
        return Interval.sealed(-self.hi, -self.lo, self.defined)

    def __add__(self, other: Interval | Number | FloatArray) -> Interval:
        b = Interval.lift(other)
        return Interval.sealed(_add(self.lo, b.lo, down), _add(self.hi, b.hi, up), self.defined & b.defined)

    def __sub__(self, other: Interval | Number | FloatArray) -> Interval:
        return self + (-Interval.lift(other))

    def __mul__(self, other: Interval | Number | FloatArray) -> Interval:
        b = Interval.lift(other)
        with np.errstate(all="ignore"):
            ends = [self.lo * b.lo, self.lo * b.hi, self.hi * b.lo, self.hi * b.hi]
        zero = self.is_zero | b.is_zero
        return _outward(self, b, ends, zero, self.defined & b.defined)

    def __truediv__(self, other: Interval | Number | FloatArray) -> Interval:
        b = Interval.lift(other)
        with np.errstate(all="ignore"):
            ends = [self.lo / b.lo, self.lo / b.hi, self.hi / b.lo, self.hi / b.hi]
        return _outward(self, b, ends, self.is_zero, self.defined & b.defined & ~b.contains(0.0))

    def __radd__(self, other: Number | FloatArray) -> Interval:
        return self + other

    def __rsub__(self, other: Number | FloatArray) -> Interval:
        return Interval.lift(other) - self

    def __rmul__(self, other: Number | FloatArray) -> Interval:
        return self * other

    def __rtruediv__(self, other: Number | FloatArray) -> Interval:
        return Interval.lift(other) / self

    def __abs__(self) -> Interval:
        least = np.maximum(np.maximum(self.lo, -self.hi), 0.0)
        return Interval.sealed(least, self.abs_upper(), self.defined)

    def square(self) -> Interval:
        """{x² : x ∈ X}, so [−1, 2]² = [0, 4]."""
        a = abs(self)
        return Interval.sealed(_times(a.lo, a.lo, down), _times(a.hi, a.hi, up), self.defined)

    def __pow__(self, k: int) -> Interval:
        """{xᵏ : x ∈ X}: |x|ᵏ is monotone, and odd powers keep the sign."""
        if k < 0:
            return 1 / self ** (-k)
        if k == 0:
            return Interval.sealed(np.ones(self.shape), np.ones(self.shape), self.defined)
        if k == 1:
            return self
        if k % 2 == 0:
            a = abs(self)
            return Interval.sealed(_natural_power(a.lo, k, down), _natural_power(a.hi, k, up), self.defined)
        left, right = np.abs(self.lo), np.abs(self.hi)
        lo = np.where(self.lo >= 0, _natural_power(left, k, down), -_natural_power(left, k, up))
        hi = np.where(self.hi >= 0, _natural_power(right, k, up), -_natural_power(right, k, down))
        return Interval.sealed(lo, hi, self.defined)

    def minimum(self, other: Interval | Number | FloatArray) -> Interval:
        b = Interval.lift(other)
        return Interval.sealed(np.minimum(self.lo, b.lo), np.minimum(self.hi, b.hi), self.defined & b.defined)

    def maximum(self, other: Interval | Number | FloatArray) -> Interval:
        b = Interval.lift(other)
        return Interval.sealed(np.maximum(self.lo, b.lo), np.maximum(self.hi, b.hi), self.defined & b.defined)

    # ---- sets

    def hull(self, other: Interval) -> Interval:
        """The least interval that contains both."""
        defined = self.defined & other.defined
        return Interval.sealed(np.minimum(self.lo, other.lo), np.maximum(self.hi, other.hi), defined)

    def intersect(self, other: Interval) -> Interval:
        """What two enclosures of one quantity leave; undefined where they are disjoint, for then none exists."""
        lo, hi = np.maximum(self.lo, other.lo), np.minimum(self.hi, other.hi)
        return Interval.sealed(lo, hi, self.defined & other.defined & (lo <= hi))

    def contains(self, value: float | FloatArray) -> BoolArray:
        return np.asarray((self.lo <= value) & (value <= self.hi))

    @property
    def is_zero(self) -> BoolArray:
        """Where the interval is exactly {0}."""
        return np.asarray((self.lo == 0.0) & (self.hi == 0.0))

    def abs_upper(self) -> FloatArray:
        """max |x| over X, exact; ∞ where undefined."""
        return np.asarray(np.maximum(-self.lo, self.hi))

    def width(self) -> FloatArray:
        """hi − lo, rounded up."""
        return _add(self.hi, -self.lo, up)

    def mid(self) -> FloatArray:
        """A float inside, near the middle (0 for the whole line): where to bisect."""
        lo, hi = np.maximum(self.lo, -MAX), np.minimum(self.hi, MAX)
        return np.asarray(np.clip(0.5 * lo + 0.5 * hi, lo, hi))

    # ---- arrays

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lo.shape

    def __getitem__(self, index: Any) -> Interval:
        return Interval.sealed(self.lo[index], self.hi[index], self.defined[index])

    def broadcast_to(self, shape: tuple[int, ...]) -> Interval:
        parts = (np.broadcast_to(part, shape) for part in (self.lo, self.hi, self.defined))
        return Interval.sealed(*parts)

    def sum(self) -> Interval:
        """Σ over the last axis, by a pairwise tree; the empty sum is 0."""
        terms = self
        if not terms.shape[-1]:
            return Interval.sealed(np.zeros(terms.shape[:-1]), np.zeros(terms.shape[:-1]), True)
        while (count := terms.shape[-1]) > 1:
            half = count // 2
            pairs = terms[..., :half] + terms[..., half : 2 * half]
            terms = pairs if count % 2 == 0 else concatenate([pairs, terms[..., -1:]])
        return terms[..., 0]


def concatenate(parts: Sequence[Interval]) -> Interval:
    """Join along the last axis; the leading axes broadcast."""
    batch = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    wide = [part.broadcast_to((*batch, part.shape[-1])) for part in parts]
    joined = ([getattr(part, name) for part in wide] for name in ("lo", "hi", "defined"))
    return Interval.sealed(*(np.concatenate(arrays, axis=-1) for arrays in joined))


def select(where: BoolArray, a: Interval, b: Interval) -> Interval:
    """a where `where`, else b."""
    pairs = ((a.lo, b.lo), (a.hi, b.hi), (a.defined, b.defined))
    return Interval.sealed(*(np.where(where, yes, no) for yes, no in pairs))


def require_defined(value: Interval, expression: str, operand: object = None) -> Interval:
    """`value`, or a DomainError that names the expression, the operand where given, and the first undefined entry."""
    if bool(value.defined.all()):
        return value
    where = tuple(int(i) for i in np.argwhere(~value.defined)[0])
    on = "" if operand is None else f" on {operand}"
    raise DomainError(f"{expression} may leave its domain{on} (first at entry {where})", expression, where)


Direction = Callable[[FloatArray], FloatArray]  # up or down


def _add(a: FloatArray, b: FloatArray, outward: Direction) -> FloatArray:
    with np.errstate(all="ignore"):
        s = a + b
        # Knuth's two-sum: the exact error of s, or not 0 (NaN, ∞) where something overflowed on the way.
        t = s - a
        exact = (a - (s - t)) + (b - t) == 0
        return np.asarray(np.where(exact, s, outward(s)))


def _times(a: FloatArray, b: FloatArray, outward: Direction) -> FloatArray:
    """a · b for a, b ≥ 0: 0 is exact, as is the product of two float32; an underflow is still ≥ 0."""
    with np.errstate(all="ignore"):
        zero = (a == 0) | (b == 0)
        exact = (np.float64(np.float32(a)) == a) & (np.float64(np.float32(b)) == b)
        return np.asarray(np.where(zero, 0.0, np.where(exact, a * b, np.maximum(outward(a * b), 0.0))))


def _natural_power(a: FloatArray, k: int, outward: Direction) -> FloatArray:
    """aᵏ for a ≥ 0, k ≥ 1, by repeated squaring: every factor is ≥ 0, so every step rounds the same way."""
    if k == 1:
        return a
    half = _natural_power(a, k // 2, outward)
    even = _times(half, half, outward)
    return _times(even, a, outward) if k % 2 else even


def _outward(a: Interval, b: Interval, ends: list[Any], zero: BoolArray, defined: BoolArray) -> Interval:
    """The hull of the four values at the ends of a ∘ b, ∘ ∈ {×, ÷}, rounded outward, with the sign it must have."""
    lo = np.minimum(np.minimum(ends[0], ends[1]), np.minimum(ends[2], ends[3]))
    hi = np.maximum(np.maximum(ends[0], ends[1]), np.maximum(ends[2], ends[3]))
    if np.isnan(lo).any():
        # 0 · ∞: one factor is exactly 0, so is the product. ∞ / ∞: the other ends already give 0 and ∞.
        ends = [np.where(np.isnan(end), 0.0, end) for end in ends]
        lo, hi = np.minimum.reduce(ends), np.maximum.reduce(ends)
    edge = bool(np.any(lo == 0) or np.any(hi == 0))
    with np.errstate(all="ignore"):
        lo, hi = down(lo), up(hi)
    if edge:  # 0 may be exact or an underflow: the signs of a and b tell on which side the truth lies
        nonnegative = ((a.lo >= 0) & (b.lo >= 0)) | ((a.hi <= 0) & (b.hi <= 0)) | zero
        nonpositive = ((a.lo >= 0) & (b.hi <= 0)) | ((a.hi <= 0) & (b.lo >= 0)) | zero
        lo = np.where(nonnegative, np.maximum(lo, 0.0), lo)
        hi = np.where(nonpositive, np.minimum(hi, 0.0), hi)
    return Interval.sealed(lo, hi, defined)


PI: Final = Interval(np.pi, np.nextafter(np.pi, 4.0))
"""π = 3.14159265358979323846…: the float nearest to it lies below."""
