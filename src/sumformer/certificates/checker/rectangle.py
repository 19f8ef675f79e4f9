"""[a, b] + i[c, d] ⊂ ℂ, an array of them at once, in the checker's own interval arithmetic.

Where an element meets a cut, a pole or a function that is not analytic it is marked in `bad`, its value useless.
norm2 and dot are bilinear, because the walk over the tree squares and multiplies without conjugating.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, from_fraction

_REAL = IntervalOperations()
_ZERO, _ONE, _TWO = (from_fraction(Fraction(k)) for k in (0, 1, 2))


@dataclass(frozen=True, slots=True)
class Rectangle:
    """re + i·im; `modulus` encloses |re + i·im|, often better than the rectangle does."""

    re: Interval
    im: Interval
    modulus: Interval


def rectangle(re: Interval, im: Interval, modulus: Interval | None = None) -> Rectangle:
    """With the modulus of the rectangle, cut down to the one known otherwise; squares may overflow or underflow."""
    size, sides = _REAL.norm([re, im]), _REAL.add(*(Interval(v.mignitude, v.magnitude) for v in (re, im)))
    size = Interval(np.maximum(size.lo, np.maximum(re.mignitude, im.mignitude)), np.minimum(size.hi, sides.hi))
    if modulus is not None:
        size = Interval(np.maximum(size.lo, modulus.lo), np.minimum(size.hi, modulus.hi))
    return Rectangle(re, im, size)


class RectangleOperations:
    """The arithmetic of the tree on `count` rectangles; `bad` collects where it is not analytic."""

    def __init__(self, count: int) -> None:
        self.bad: NDArray[np.bool_] = np.zeros(count, dtype=bool)

    def const(self, value: Fraction) -> Rectangle:
        return rectangle(from_fraction(value), _ZERO)

    def add(self, a: Rectangle, b: Rectangle) -> Rectangle:
        return rectangle(_REAL.add(a.re, b.re), _REAL.add(a.im, b.im))

    def sub(self, a: Rectangle, b: Rectangle) -> Rectangle:
        return rectangle(_REAL.sub(a.re, b.re), _REAL.sub(a.im, b.im))

    def neg(self, a: Rectangle) -> Rectangle:
        return Rectangle(_REAL.neg(a.re), _REAL.neg(a.im), a.modulus)

    def mul(self, a: Rectangle, b: Rectangle) -> Rectangle:
        re = _REAL.sub(_REAL.mul(a.re, b.re), _REAL.mul(a.im, b.im))
        im = _REAL.add(_REAL.mul(a.re, b.im), _REAL.mul(a.im, b.re))
        return rectangle(re, im, _REAL.mul(a.modulus, b.modulus))

    def div(self, a: Rectangle, b: Rectangle) -> Rectangle:
        """a·b̄/|b|², and a times the hull of 1/b."""
        size = self._where(~(b.modulus.lo > 0), b.modulus)
        square = _REAL.power(size, 2)
        square = self._where(~(square.lo > 0), square)
        top = self.mul(a, Rectangle(b.re, _REAL.neg(b.im), b.modulus))
        whole = rectangle(_REAL.div(top.re, square), _REAL.div(top.im, square), _REAL.div(a.modulus, size))
        with np.errstate(over="ignore", invalid="ignore"):  # where the hull is unbounded
            inverse = Rectangle(_inverse(b.re, b.im), _REAL.neg(_inverse(b.im, b.re)), _REAL.div(_ONE, size))
            return _meet(whole, self.mul(a, inverse))

    def power(self, v: Rectangle, k: int) -> Rectangle:
        if k < 0:
            return self.div(self.const(Fraction(1)), self.power(v, -k))
        if k == 0:
            return self.const(Fraction(1))
        if k % 2 == 0:  # (a + bi)² = a² − b² + 2abi with real squares, which stay ≥ 0
            half = self.power(v, k // 2)
            re = _REAL.sub(_REAL.power(half.re, 2), _REAL.power(half.im, 2))
            im = _REAL.mul(_TWO, _REAL.mul(half.re, half.im))
            return rectangle(re, im, _REAL.power(half.modulus, 2))
        return v if k == 1 else self.mul(v, self.power(v, k - 1))

    def total(self, values: list[Rectangle]) -> Rectangle:
        return reduce(self.add, values)

    def norm(self, values: list[Rectangle]) -> Rectangle:
        """√Σ z_c², which is ‖v‖ for real v ≠ 0."""
        if len(values) == 1:
            return self.function("abs", values[0])
        return self.function("sqrt", self.total([self.power(v, 2) for v in values]))

    def extremum(self, op: str, a: Rectangle, b: Rectangle) -> Rectangle:
        self.bad[:] = True
        return a

    def function(self, fn: str, v: Rectangle) -> Rectangle:
        match fn:
            case "exp":
                size = _REAL.function("exp", v.re)
                re, im = (_REAL.mul(size, _REAL.function(wave, v.im)) for wave in ("cos", "sin"))
                return rectangle(re, im, size)
            case "sin":
                return self._wave(v, "sin", "cos")
            case "cos":
                turned = self._wave(v, "cos", "sin")
                return Rectangle(turned.re, _REAL.neg(turned.im), turned.modulus)
            case "sigmoid":
                return self._sigmoid(v)
            case "tanh":  # odd, 2/(1 + e) − 1 = 1 − 2e/(1 + e), e = e^−2v; at most tan |v| ≤ 1.1 |v| near 0
                one, two, left = self.const(Fraction(1)), self.const(Fraction(2)), v.re.hi < 0
                power = self.function("exp", self.mul(two, _pick(left, v, self.neg(v))))
                whole = self.div(two, self.add(one, power))  # which sees the poles
                right = _meet(self.sub(whole, one), self.sub(one, self.mul(power, whole)))
                turned = _pick(left, self.neg(right), right)
                most = np.where(v.modulus.hi <= 0.5, 1.1 * v.modulus.hi + 1e-300, np.inf)
                return rectangle(turned.re, turned.im, Interval(np.zeros(np.shape(most)), most))
            case "sqrt" | "log":
                return self._cut(fn, v)
            case "abs":  # z right and −z left of the imaginary axis, which is |z| for real z
                left = v.re.hi < 0
                self.bad = self.bad | ~(left | (v.re.lo > 0))
                return _pick(left, self.neg(v), v)
        self.bad[:] = True
        return v

    def _sigmoid(self, v: Rectangle) -> Rectangle:
        """1/(1 + e^−v); where Re v < 0 as e^v/(1 + e^v), which does not overflow."""
        left = v.re.hi < 0
        power = self.function("exp", _pick(left, v, self.neg(v)))
        whole = self.div(self.const(Fraction(1)), self.add(self.const(Fraction(1)), power))
        return _pick(left, self.mul(power, whole), whole)

    def _wave(self, v: Rectangle, first: str, second: str) -> Rectangle:
        """(first(a)·cosh b, second(a)·sinh b)."""
        up, down = (_REAL.function("exp", b) for b in (v.im, _REAL.neg(v.im)))
        sinh = _small(v.im, _REAL.div(_REAL.sub(up, down), _TWO))
        cosh = _REAL.function("sqrt", _REAL.add(_ONE, _REAL.power(sinh, 2)))
        re, im = _REAL.mul(_REAL.function(first, v.re), cosh), _REAL.mul(_REAL.function(second, v.re), sinh)
        return rectangle(re, im, Interval(np.zeros(np.shape(cosh.hi)), cosh.hi))

    def _cut(self, fn: str, v: Rectangle) -> Rectangle:
        """√w = s + i·Im w/(2s), s = √((|w| + Re w)/2) > 0; log w = log|w| + i·arg w. Both off (−∞, 0]."""
        on_cut = ~((v.re.lo > 0) | (v.im.lo > 0) | (v.im.hi < 0))
        size = self._where(on_cut | ~(v.modulus.lo > 0), v.modulus)
        if fn == "log":
            return rectangle(_REAL.function("log", size), _angle(v))
        inside = _REAL.div(_REAL.add(size, v.re), _TWO)
        s = _REAL.function("sqrt", self._where(~(inside.lo > 0), inside))
        s = self._where(~(s.lo > 0), s)
        return rectangle(s, _REAL.div(v.im, _REAL.mul(_TWO, s)), _REAL.function("sqrt", size))

    def _where(self, wrong: NDArray[np.bool_], v: Interval) -> Interval:
        """Mark the wrong elements, and give them the harmless value 1."""
        self.bad = self.bad | wrong
        return Interval(np.where(wrong, 1.0, v.lo), np.where(wrong, 1.0, v.hi))


def _pick(first: NDArray[np.bool_], a: Rectangle, b: Rectangle) -> Rectangle:
    """a where `first`, else b."""
    parts = ((a.re, b.re), (a.im, b.im), (a.modulus, b.modulus))
    return Rectangle(*(Interval(np.where(first, p.lo, q.lo), np.where(first, p.hi, q.hi)) for p, q in parts))


def _meet(a: Rectangle, b: Rectangle) -> Rectangle:
    """What two enclosures of the same numbers share; NaN, of ∞·0, is no bound."""
    pairs = ((a.re, b.re), (a.im, b.im), (a.modulus, b.modulus))
    return Rectangle(*(Interval(np.fmax(p.lo, q.lo), np.fmin(p.hi, q.hi)) for p, q in pairs))


def _inverse(s: Interval, t: Interval) -> Interval:
    """s/(s² + t²), Re 1/(s + it): its range where s² + t² is neither tiny nor huge, else unbounded."""
    return Interval(-_most(_REAL.neg(s), t), _most(s, t))


def _most(s: Interval, t: Interval) -> Floats:
    """≥ sup s/(s² + t²). For s > 0 it falls with |t| and is largest at s = |t|; for s ≤ 0 it is least at an end."""
    near = np.clip(t.mignitude, np.maximum(s.lo, 0.0), np.maximum(s.hi, 0.0))
    right = _ratio(near, t.mignitude).hi
    left = np.maximum(*(-_ratio(np.abs(end), t.magnitude).lo for end in (s.lo, s.hi)))
    return np.where(s.hi > 0, right, left)


def _ratio(s: Floats, t: Floats) -> Interval:
    """s/(s² + t²) at points s, t ≥ 0."""
    size = np.maximum(s, t)
    sure = (size > 1e-100) & (size < 1e100)
    s, t = np.where(sure, s, 1.0), np.where(sure, t, 1.0)
    at = Interval(s, s)
    value = _REAL.div(at, _REAL.add(_REAL.power(at, 2), _REAL.power(Interval(t, t), 2)))
    return Interval(np.where(sure, value.lo, -np.inf), np.where(sure, value.hi, np.inf))


def _small(t: Interval, sinh: Interval) -> Interval:
    """sinh t where |t| ≤ 1: between t and t(1 + t²/4), so that it does not lose its digits with e^t − e^−t."""
    near = t.magnitude <= 1
    low, high = (np.abs(end) * (1 + end**2 / 4) * (1 + 1e-15) + 1e-300 for end in (t.lo, t.hi))
    least, most = np.where(t.lo < 0, -low, t.lo), np.where(t.hi > 0, high, t.hi)
    return Interval(
        np.where(near, np.maximum(sinh.lo, least), sinh.lo), np.where(near, np.minimum(sinh.hi, most), sinh.hi)
    )


def _angle(v: Rectangle) -> Interval:
    """arg w: where Re w > 0 the arcus tangent of Im w/Re w, whose extremes lie at corners; else within ±π."""
    right = v.re.lo > 0
    near, far = np.where(right, v.re.lo, 1.0), np.where(right, v.re.hi, 1.0)
    low = np.arctan(v.im.lo / np.where(v.im.lo < 0, near, far)) - 1e-14
    high = np.arctan(v.im.hi / np.where(v.im.hi > 0, near, far)) + 1e-14
    return Interval(np.where(right, low, -np.pi - 1e-14), np.where(right, high, np.pi + 1e-14))


def finite_modulus(v: Rectangle, bad: NDArray[np.bool_]) -> Floats:
    """Upper bounds of |v|, ∞ where `bad` or not finite."""
    bound = np.broadcast_to(v.modulus.hi, bad.shape)
    return np.where(bad | ~np.isfinite(bound), np.inf, bound)
