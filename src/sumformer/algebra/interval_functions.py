"""Elementary functions of real intervals: monotone ones by their ends, sin and cos with the extrema inside.

libm's values are widened as `rounding.LIBM_ULPS` says, and cut back to the range the function is known to have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from sumformer.algebra.interval import Interval
from sumformer.algebra.rounding import BoolArray, FloatArray, down, libm_down, libm_up, up

REDUCTION_LIMIT: Final = 2.0**30
"""Beyond this magnitude sin and cos answer [−1, 1]: a box that far out is never narrow enough to matter."""

Function = Callable[[FloatArray], Any]


def exp(x: Interval) -> Interval:
    return _increasing(np.exp, x, x.defined, least=0.0, fixed=(0.0, 1.0))


def log(x: Interval) -> Interval:
    """Undefined where x may be ≤ 0."""
    return _increasing(np.log, x, x.defined & (x.lo > 0), fixed=(1.0, 0.0))


def sqrt(x: Interval) -> Interval:
    """Undefined where x may be < 0; √ is correctly rounded, one step outward is enough."""
    with np.errstate(all="ignore"):
        lo = np.maximum(down(np.sqrt(x.lo)), 0.0)
        hi = np.where(x.hi == 0, 0.0, up(np.sqrt(x.hi)))
    return Interval.sealed(lo, hi, x.defined & (x.lo >= 0))


def tanh(x: Interval) -> Interval:
    return _increasing(np.tanh, x, x.defined, least=-1.0, most=1.0, fixed=(0.0, 0.0))


def sigmoid(x: Interval) -> Interval:
    """1 / (1 + e⁻ˣ)."""
    return _increasing(_sigmoid, x, x.defined, least=0.0, most=1.0, fixed=(0.0, 0.5))


def sinh(x: Interval) -> Interval:
    return _increasing(np.sinh, x, x.defined, fixed=(0.0, 0.0))


def cosh(x: Interval) -> Interval:
    """Even, increasing in |x|."""
    return _increasing(np.cosh, abs(x), x.defined, least=1.0, fixed=(0.0, 1.0))


def sin(x: Interval) -> Interval:
    return _wave(np.sin, x, crest=0.25, at_zero=0.0)


def cos(x: Interval) -> Interval:
    return _wave(np.cos, x, crest=0.0, at_zero=1.0)


def hypot(x: Interval, y: Interval) -> Interval:
    """√(x² + y²), increasing in |x| and |y|; exact where one of them is {0}."""
    a, b = abs(x), abs(y)
    with np.errstate(all="ignore"):
        lo = np.maximum(libm_down(np.hypot(a.lo, b.lo)), np.maximum(a.lo, b.lo))
        hi = np.minimum(libm_up(np.hypot(a.hi, b.hi)), up(a.hi + b.hi))
    one_zero = (a.hi == 0) | (b.hi == 0)
    return Interval.sealed(lo, np.where(one_zero, np.maximum(a.hi, b.hi), hi), x.defined & y.defined)


UNARY: Final[Mapping[str, Callable[[Interval], Interval]]] = {
    "exp": exp,
    "log": log,
    "sqrt": sqrt,
    "sin": sin,
    "cos": cos,
    "tanh": tanh,
    "sigmoid": sigmoid,
    "abs": abs,
}


def _sigmoid(x: FloatArray) -> FloatArray:
    # e = e^{−|x|} never overflows. Its relative error 4 · 2⁻⁵² enters with weight ≤ 1, the sum and the quotient add
    # 2⁻⁵³ each: 5 · 2⁻⁵² < 8 · 2⁻⁵², the widening; subnormal e: 1 + e = 1, nothing is added.
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, e) / (1.0 + e))


def _increasing(
    f: Function,
    x: Interval,
    defined: BoolArray,
    least: float = -np.inf,
    most: float = np.inf,
    fixed: tuple[float, float] = (np.nan, np.nan),
) -> Interval:
    """[f(lo), f(hi)] widened, within [least, most]; `fixed` = (a, f(a)) is a value known exactly."""
    at, value = fixed
    with np.errstate(all="ignore"):
        lo = np.where(x.lo == at, value, np.maximum(libm_down(f(x.lo)), least))
        hi = np.where(x.hi == at, value, np.minimum(libm_up(f(x.hi)), most))
    return Interval.sealed(lo, hi, defined)


def _wave(f: Function, x: Interval, crest: float, at_zero: float) -> Interval:
    """f = sin or cos, with f = 1 at `crest` + ℤ turns and −1 half a turn later; monotone in between."""
    tame = x.abs_upper() <= REDUCTION_LIMIT
    left, right = np.where(tame, x.lo, 0.0), np.where(tame, x.hi, 0.0)
    at_left, at_right = f(left), f(right)
    lo = np.minimum(*(np.where(a == 0, at_zero, libm_down(v)) for a, v in ((left, at_left), (right, at_right))))
    hi = np.maximum(*(np.where(a == 0, at_zero, libm_up(v)) for a, v in ((left, at_left), (right, at_right))))
    lo = np.where(~tame | _meets(left, right, crest + 0.5), -1.0, np.maximum(lo, -1.0))
    hi = np.where(~tame | _meets(left, right, crest), 1.0, np.minimum(hi, 1.0))
    return Interval.sealed(lo, hi, x.defined)


def _meets(left: FloatArray, right: FloatArray, phase: float) -> BoolArray:
    """Whether [left, right] may meet 2π(phase + ℤ)."""
    # Three roundings and that of 2π: each end errs by at most 4 · 2⁻⁵³ (1 + |turns|), well below the margin.
    a, b = left / (2 * np.pi), right / (2 * np.pi)
    a, b = a - phase - 2.0**-48 * (1 + np.abs(a)), b - phase + 2.0**-48 * (1 + np.abs(b))
    return np.asarray(np.ceil(a) <= np.floor(b))
