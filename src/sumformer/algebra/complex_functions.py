"""Elementary functions of complex rectangles; each is the real function on entries that are exactly real.

Undefined where a rectangle may hold a pole (tanh, sigmoid), meets the cut (−∞, 0] (log, sqrt) or the imaginary axis
(abs), or where the function is not analytic at all (min, max of arguments that are not real).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from sumformer.algebra import interval_functions as real
from sumformer.algebra.complex_interval import ComplexInterval, branch, select
from sumformer.algebra.interval import PI, Interval
from sumformer.algebra.interval import select as select_real
from sumformer.algebra.rounding import BoolArray, FloatArray, libm_down, libm_up


def exp(z: ComplexInterval) -> ComplexInterval:
    """e^{x+iy} = eˣ (cos y + i sin y)."""
    radius = real.exp(z.re)
    return ComplexInterval(radius * real.cos(z.im), radius * real.sin(z.im))


def sin(z: ComplexInterval) -> ComplexInterval:
    """sin(x + iy) = sin x cosh y + i cos x sinh y."""
    return ComplexInterval(real.sin(z.re) * real.cosh(z.im), real.cos(z.re) * real.sinh(z.im))


def cos(z: ComplexInterval) -> ComplexInterval:
    """cos(x + iy) = cos x cosh y − i sin x sinh y."""
    return ComplexInterval(real.cos(z.re) * real.cosh(z.im), -(real.sin(z.re) * real.sinh(z.im)))


def sigmoid(z: ComplexInterval) -> ComplexInterval:
    """1 / (1 + e^{−z}), undefined where 1 + e^{−z} may vanish."""
    return branch(z.is_real, lambda: ComplexInterval.from_real(real.sigmoid(z.re)), lambda: _sigmoid(z))


def tanh(z: ComplexInterval) -> ComplexInterval:
    """tanh z = 2 sigmoid(2z) − 1, and tanh(−z) = −tanh z on the left half, where that would cancel to −1."""
    return branch(z.is_real, lambda: ComplexInterval.from_real(real.tanh(z.re)), lambda: _tanh(z))


def log(z: ComplexInterval) -> ComplexInterval:
    """log|z| + i arg z, undefined where the rectangle meets (−∞, 0]."""
    return branch(z.is_real, lambda: ComplexInterval.from_real(real.log(z.re)), lambda: _log(z))


def sqrt(z: ComplexInterval) -> ComplexInterval:
    """The root with positive real part, undefined where the rectangle meets (−∞, 0]; real arguments may be 0."""
    return branch(z.is_real, lambda: ComplexInterval.from_real(real.sqrt(z.re)), lambda: continued_sqrt(z))


def absolute(z: ComplexInterval) -> ComplexInterval:
    """|x| of a real entry; its continuation z right and −z left of the imaginary axis, undefined where both may be."""
    left, right = z.re.hi < 0, z.re.lo > 0
    turned = select(left, -z, z)
    return branch(
        z.is_real,
        lambda: ComplexInterval.from_real(abs(z.re)),
        lambda: ComplexInterval(_sealed(turned.re, left | right), _sealed(turned.im, left | right)),
    )


def _sealed(value: Interval, where: BoolArray) -> Interval:
    """The value, undefined elsewhere."""
    return Interval.sealed(value.lo, value.hi, value.defined & where)


def minimum(a: ComplexInterval, b: ComplexInterval) -> ComplexInterval:
    return only_real(a.re.minimum(b.re), a.is_real & b.is_real)


def maximum(a: ComplexInterval, b: ComplexInterval) -> ComplexInterval:
    return only_real(a.re.maximum(b.re), a.is_real & b.is_real)


def only_real(value: Interval, is_real: BoolArray) -> ComplexInterval:
    """The real value, undefined where an argument was not exactly real."""
    return ComplexInterval.from_real(_sealed(value, is_real))


UNARY: Final[Mapping[str, Callable[[ComplexInterval], ComplexInterval]]] = {
    "exp": exp,
    "log": log,
    "sqrt": sqrt,
    "sin": sin,
    "cos": cos,
    "tanh": tanh,
    "sigmoid": sigmoid,
    "abs": absolute,
}


def _right_half(z: ComplexInterval) -> tuple[BoolArray, ComplexInterval]:
    """Whether z lies (mostly) left of the imaginary axis, and ±z, which lies right of it."""
    left = z.re.mid() < 0
    return left, select(left, -z, z)


def _sigmoid(z: ComplexInterval) -> ComplexInterval:
    # With w = ±z right of the axis, |e^{−w}| ≲ 1 cannot overflow. On the left, sigmoid(z) = 1 − sigmoid(w) where e
    # occurs once, and e · sigmoid(w), which keeps small values small: both enclose it, so does what they share.
    left, w = _right_half(z)
    e = exp(-w)
    right = 1 / (1 + e)
    return select(left, (1 - right).intersect(e * right), right) if bool(left.any()) else right


def _tanh(z: ComplexInterval) -> ComplexInterval:
    left, w = _right_half(z)
    value = 2 / (1 + exp(-2 * w)) - 1
    return select(left, -value, value)


def _log(z: ComplexInterval) -> ComplexInterval:
    """A rectangle off the cut lies in the slit plane, where arg is smooth with a gradient that never vanishes.

    Its extremes are therefore on the boundary, and along an edge d arg = (x dy − y dx)/|z|² has one sign (x dy − y dx
    is constant on a line): they are at corners.
    """
    defined = z.defined & ~z.touches_cut
    with np.errstate(all="ignore"):
        corners = [np.arctan2(y, x) for x in (z.re.lo, z.re.hi) for y in (z.im.lo, z.im.hi)]
        lo = np.maximum(libm_down(np.minimum.reduce(corners)), -PI.hi)
        hi = np.minimum(libm_up(np.maximum.reduce(corners)), PI.hi)
    modulus = real.log(z.modulus())
    return ComplexInterval(Interval.sealed(modulus.lo, modulus.hi, defined), Interval.sealed(lo, hi, defined))


def continued_sqrt(z: ComplexInterval) -> ComplexInterval:
    """w = p + iq = √(a + ib). From dw/da = 1/(2w) and dw/db = i/(2w), with p > 0 and sign q = sign b off the cut:

    ∂p/∂a = p/(2|w|²) > 0, ∂p/∂b = q/(2|w|²): p rises in a and in |b|;
    ∂q/∂b = p/(2|w|²) > 0, ∂q/∂a = −q/(2|w|²): q rises in b, and |q| falls in a.
    So the extremes are at p(a.lo, min|b|), p(a.hi, max|b|); q is largest at b.hi, with a.lo if b.hi > 0 and else with
    a.hi, and least at b.lo, with a.lo if b.lo < 0 and else with a.hi.
    """
    a, b, height = z.re, z.im, abs(z.im)
    p_least, _ = _point_sqrt(a.lo, height.lo)
    p_most, _ = _point_sqrt(a.hi, height.hi)
    _, q_top = _point_sqrt(np.where(b.hi > 0, a.lo, a.hi), np.abs(b.hi))
    _, q_bottom = _point_sqrt(np.where(b.lo < 0, a.lo, a.hi), np.abs(b.lo))
    most = np.where(b.hi > 0, q_top.hi, -q_top.lo)
    least = np.where(b.lo < 0, -q_bottom.hi, q_bottom.lo)
    defined = z.defined & ~z.touches_cut
    re = Interval.sealed(np.maximum(p_least.lo, 0.0), p_most.hi, defined)
    return ComplexInterval(re, Interval.sealed(least, most, defined))


def _point_sqrt(a: FloatArray, b: FloatArray) -> tuple[Interval, Interval]:
    """√(a + ib) for floats a and b ≥ 0, without cancellation: t = √((|z| + |a|)/2), and b/(2t)."""
    # An infinite coordinate is sealed as the ray [MAX, ∞], which encloses what "no bound known" may stand for.
    x, y = Interval.sealed(np.abs(a), np.abs(a), True), Interval.sealed(b, b, True)
    t = real.sqrt(Interval.point(0.5) * real.hypot(x, y) + Interval.point(0.5) * x)
    other = y / (2 * t)
    return select_real(a >= 0, t, other), select_real(a >= 0, other, t)
