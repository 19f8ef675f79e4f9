"""A value with its error: the exact value lies in `range`, the computed one within `error` of the exact one.

Rules for floating-point evaluation with unit roundoff u:
  |fl(â + b̂) − (a + b)| ≤ e_a + e_b + u|â + b̂|
  |fl(â b̂) − a b|       ≤ |a| e_b + |b| e_a + e_a e_b + u|â b̂|
  |fl(â / b̂) − a / b|   ≤ (e_a + |a/b| e_b) / |b̂| + u|â / b̂|
  |fl(g(â)) − g(a)|     ≤ sup|g'| e_a + 4 ulp            (g' over what lies between a and â; √ of â < 0 counts as 0)
Error bounds are non-negative and computed in float64; every result is inflated by 1 + 2⁻⁴⁰, far above the few roundings
of the formula itself. `tiny` covers results that underflow, flushed to zero or not; a computed value that may exceed
`huge` overflows, and its error is unbounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from sumformer.algebra import interval
from sumformer.algebra.interval import Interval
from sumformer.algebra.interval_operations import IntervalOperations
from sumformer.algebra.rounding import FloatArray
from sumformer.errors import DomainError

INFLATE = 1.0 + 2.0**-40
LIBRARY_ULPS = 4
"""ASSUMED: torch's elementary functions err by at most 4 ulp, on every device."""


@dataclass(frozen=True, eq=False)
class Tracked:
    """`range` of the exact value and a bound `error` ≥ |computed − exact|, both of shape (…, width)."""

    range: Interval
    error: FloatArray

    @property
    def magnitude(self) -> FloatArray:
        """sup |exact|."""
        return self.range.abs_upper()

    def computed(self) -> Interval:
        """Where the computed value lies; exactly `range` where there is no error."""
        wide = self.range + Interval(-self.error, self.error)
        lo, hi = np.where(self.error == 0, self.range.lo, wide.lo), np.where(self.error == 0, self.range.hi, wide.hi)
        return Interval.sealed(lo, hi, wide.defined)


class TrackedOperations:
    """The arithmetic of tracked values; `u` = 0 leaves rounding out (then `error` is what the inputs carry on)."""

    def __init__(self, u: float, tiny: float, huge: float) -> None:
        self.u, self.tiny, self.huge = u, tiny, huge
        self.exact = IntervalOperations()

    def _rounded(self, value: Interval, error: FloatArray, roundings: float = 1.0) -> Tracked:
        """`error` plus that many roundings of a result of this size."""
        k = roundings * self.u
        with np.errstate(invalid="ignore", over="ignore"):
            total = (error + k * (value.abs_upper() + error) + (self.tiny if k else 0.0)) * INFLATE
        fits = value.abs_upper() + total <= self.huge  # False for NaN as well
        return Tracked(value, np.broadcast_to(np.where(fits, total, np.inf), value.shape))

    def const(self, value: Fraction) -> Tracked:
        enclosure = self.exact.const(value)
        return self._rounded(enclosure, np.zeros(enclosure.shape), 0.0 if is_representable(value, self.u) else 2.0)

    def add(self, a: Tracked, b: Tracked) -> Tracked:
        return self._rounded(self.exact.add(a.range, b.range), a.error + b.error)

    def sub(self, a: Tracked, b: Tracked) -> Tracked:
        return self._rounded(self.exact.sub(a.range, b.range), a.error + b.error)

    def neg(self, a: Tracked) -> Tracked:
        return Tracked(-a.range, a.error)

    def mul(self, a: Tracked, b: Tracked) -> Tracked:
        value = self.exact.mul(a.range, b.range) if a is not b else a.range.square()
        error = _times(a.magnitude, b.error) + _times(b.magnitude, a.error) + _times(a.error, b.error)
        return self._rounded(value, error)

    def div(self, a: Tracked, b: Tracked) -> Tracked:
        computed = b.computed()
        if bool(np.any(computed.contains(0.0))):
            lies = f"it lies in {_hull(computed)}"
            if not bool(np.any(b.range.contains(0.0))):
                lies += f" as computed, in {_hull(b.range)} but for rounding: take more digits or a smaller box"
            raise DomainError(f"a denominator may vanish: {lies}", where=_hull(computed))
        value = self.exact.div(a.range, b.range)
        least = np.where(computed.lo > 0, computed.lo, -computed.hi)
        error = (a.error + _times(value.abs_upper(), b.error)) / least
        return self._rounded(value, error)

    def power(self, a: Tracked, k: int) -> Tracked:
        if k < 0:
            return self.div(self.const(Fraction(1)), self.power(a, -k))
        value = self.exact.power(a.range, k)
        if k <= 1:
            return Tracked(value, a.error if k else np.zeros(value.shape))
        with np.errstate(over="ignore"):
            slope = k * (a.magnitude + a.error) ** (k - 1)
        return self._rounded(value, _times(slope, a.error) if a.error.any() else a.error, 1.01 * (k - 1))

    def unary(self, fn: str, a: Tracked) -> Tracked:
        value = self.exact.unary(fn, a.range)
        error = _sqrt_error(a) if fn == "sqrt" else np.where(a.error == 0, 0.0, _times(_slope(fn, a), a.error))
        if not bool(np.all(value.defined)):
            raise DomainError(f"{fn} leaves its domain: its argument lies in {_hull(a.range)}", fn, _hull(a.range))
        return self._rounded(value, error, 0.0 if fn == "abs" else 2.0 * LIBRARY_ULPS)

    def extremum(self, op: Literal["min", "max"], a: Tracked, b: Tracked) -> Tracked:
        value = self.exact.extremum(op, a.range, b.range)
        return Tracked(value, np.broadcast_to(np.maximum(a.error, b.error), value.shape))

    def cat(self, parts: Sequence[Tracked]) -> Tracked:
        ranges = interval.concatenate([p.range for p in parts])
        errors = [np.broadcast_to(p.error, (*ranges.shape[:-1], p.range.shape[-1])) for p in parts]
        return Tracked(ranges, np.concatenate(errors, axis=-1))

    def slice(self, a: Tracked, start: int, stop: int) -> Tracked:
        return Tracked(a.range[..., start:stop], a.error[..., start:stop])

    def total(self, a: Tracked) -> Tracked:
        width = a.range.shape[-1]
        value = self.exact.total(a.range)
        size = (a.magnitude + a.error).sum(-1, keepdims=True)
        error = a.error.sum(-1, keepdims=True) + 1.01 * (width - 1) * self.u * size
        return self._rounded(value, np.where(size <= self.huge, error, np.inf))

    def dot(self, a: Tracked, b: Tracked) -> Tracked:
        product = self.total(self.mul(a, b))
        return Tracked(self.exact.dot(a.range, b.range), product.error)

    def norm2(self, a: Tracked) -> Tracked:
        return Tracked(self.exact.norm2(a.range), self.total(self.mul(a, a)).error)

    def norm(self, a: Tracked) -> Tracked:
        """1-Lipschitz in the Euclidean norm; the library's own roundings are those of norm2 and a square root."""
        value = self.exact.norm(a.range)
        width = a.range.shape[-1]
        with np.errstate(over="ignore"):
            moved = np.sqrt((a.error**2).sum(-1, keepdims=True)) * INFLATE
            squares = ((a.magnitude + a.error) ** 2).sum(-1, keepdims=True)
        if self.u:
            moved = moved + np.sqrt(width * self.tiny) * INFLATE  # squares that underflow
        return self._rounded(value, np.where(squares <= self.huge, moved, np.inf), width + 2.0 * LIBRARY_ULPS)


def is_representable(value: Fraction, u: float) -> bool:
    """Whether value is a float of unit roundoff u, neither very large nor very small."""
    bits = 24 if u > 2.0**-50 else 53
    numerator = abs(value.numerator)
    odd = numerator >> ((numerator & -numerator).bit_length() - 1) if numerator else 0
    power_of_two = value.denominator & (value.denominator - 1) == 0
    return power_of_two and odd.bit_length() <= bits and abs(value) < 2**100 and value.denominator < 2**100


def _times(a: FloatArray, b: FloatArray) -> FloatArray:
    """a·b of bounds; with an unbounded factor the product is unbounded, since 0·∞ computes NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(np.isinf(a) | np.isinf(b), np.inf, a * b)


def _hull(value: Interval) -> tuple[float, float]:
    return float(value.lo.min()), float(value.hi.max())


def _slope(fn: str, a: Tracked) -> FloatArray:
    """sup |g'| between the exact and the computed argument."""
    computed = a.computed()
    if fn == "exp":
        with np.errstate(over="ignore"):
            return np.exp(computed.hi) * INFLATE
    if fn == "log":
        if bool(np.any(computed.lo <= 0)):
            raise DomainError(f"log leaves its domain: its argument lies in {_hull(computed)}", fn, _hull(computed))
        return 1.0 / computed.lo * INFLATE
    return np.full(a.error.shape, 0.25 if fn == "sigmoid" else 1.0)


def _sqrt_error(a: Tracked) -> FloatArray:
    """|√max(â, 0) − √a| ≤ min(e/(√â_min + √a_min), √e), as a ≥ 0 and so |max(â, 0) − a| ≤ e."""
    root = np.sqrt(np.maximum(a.computed().lo, 0.0)) + np.sqrt(np.maximum(a.range.lo, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        steep = np.where(root > 0, a.error / root, np.inf)
    return np.where(a.error == 0, 0.0, np.minimum(steep, np.sqrt(a.error))) * INFLATE
