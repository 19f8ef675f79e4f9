"""Outward rounding: the few floating-point facts on which every enclosure of this package rests.

IEEE 754 binary64 rounds +, −, ×, ÷, √ to nearest, so the exact result lies between the two neighbours of the
computed one. The elementary functions carry no such promise; what is taken for granted about them is `LIBM_ULPS`.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sumformer.errors import InputError

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

LIBM_ULPS: Final = 4
"""ASSUMED: numpy's float64 exp, log, sin, cos, sinh, cosh, tanh, arctan2 and hypot err by at most 4 ulp."""

LIBM_WIDENING_ULPS: Final = 2 * LIBM_ULPS
"""Their computed values are widened by 8 · 2⁻⁵² |v| + 8 · 2⁻¹⁰⁷⁴, at least twice what is assumed."""

MAX: Final = float(np.finfo(np.float64).max)
TINY: Final = float(np.finfo(np.float64).smallest_subnormal)

_SIGNIFICAND_BITS: Final = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
_CHUNK: Final = 1024


def up(a: ArrayLike) -> FloatArray:
    """The next float64 above a; ∞ above MAX."""
    with np.errstate(over="ignore"):
        return np.asarray(np.nextafter(a, np.inf))


def down(a: ArrayLike) -> FloatArray:
    """The next float64 below a; −∞ below −MAX."""
    with np.errstate(over="ignore"):
        return np.asarray(np.nextafter(a, -np.inf))


def shown_up(value: float, digits: int = 3) -> str:
    """f"{value:.3g}", but rounded up: what is printed is ≥ value, so that a bound stays one."""
    near = f"{value:.{digits}g}"
    if not float(near) < value:
        return near
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).plus(Decimal(value))):.{digits}g}"


def libm_up(value: FloatArray) -> FloatArray:
    """An upper bound of the exact value of which `value` is libm's result; −∞ stands for "below −MAX"."""
    finite = np.maximum(value, -MAX)
    with np.errstate(over="ignore"):
        return np.asarray(finite + _libm_radius(finite))


def libm_down(value: FloatArray) -> FloatArray:
    """A lower bound of the exact value of which `value` is libm's result; ∞ stands for "above MAX"."""
    finite = np.minimum(value, MAX)
    with np.errstate(over="ignore"):
        return np.asarray(finite - _libm_radius(finite))


def _libm_radius(value: FloatArray) -> FloatArray:
    # 2⁻⁴⁹|v| is at least 8 ulp(v); in the subnormal range, where it underflows, the ulp is TINY.
    return np.asarray(np.abs(value) * (LIBM_WIDENING_ULPS * 2.0**-52) + LIBM_WIDENING_ULPS * TINY)


def unit_roundoff(dtype: object) -> float:
    """u = 2⁻ᵖ with p the bits of the significand; takes numpy or torch dtypes, or their names."""
    name = str(dtype).removeprefix("torch.")
    if name not in _SIGNIFICAND_BITS:
        name = np.dtype(dtype).name  # type: ignore[call-overload]  # np.float32 the class prints as <class ...>
    if name not in _SIGNIFICAND_BITS:
        raise InputError(f"unit_roundoff: expected one of {', '.join(_SIGNIFICAND_BITS)}, got {dtype}")
    return float(2.0 ** -_SIGNIFICAND_BITS[name])


def gamma(k: int, u: float) -> float:
    """γ_k = k u / (1 − k u), rounded up: k roundings in a row change a number by a relative γ_k at most."""
    if k < 0 or not 0 <= u < 1:
        raise InputError(f"gamma: expected k >= 0 and 0 <= u < 1, got k = {k}, u = {u}")
    ku = k * Fraction(u)
    if 2 * ku >= 1:
        raise InputError(f"gamma: expected k u < 1/2, got k = {k}, u = {u}: too many roundings for this arithmetic")
    return fraction_bounds(ku / (1 - ku))[1]


def fraction_bounds(value: Fraction | int) -> tuple[float, float]:
    """The tightest floats with lower ≤ value ≤ upper; equal when value is a float."""
    exact = Fraction(value)
    if abs(exact) > Fraction(MAX):
        return (MAX, math.inf) if exact > 0 else (-math.inf, -MAX)
    nearest = float(exact)  # correctly rounded
    if Fraction(nearest) > exact:
        return math.nextafter(nearest, -math.inf), nearest
    if Fraction(nearest) < exact:
        return nearest, math.nextafter(nearest, math.inf)
    return nearest, nearest


def sum_up(values: ArrayLike) -> float:
    """An upper bound of Σ values, all ≥ 0."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    if not bool(np.all(flat >= 0)):
        raise InputError("sum_up: expected numbers >= 0, got a negative number or NaN")
    if flat.size <= _CHUNK:
        return _fsum_up(flat)
    # Rows of 1024 by numpy, in an order of its choosing: γ_1024; the rows' results by fsum.
    rows = np.pad(flat, (0, -flat.size % _CHUNK)).reshape(-1, _CHUNK)
    with np.errstate(over="ignore"):
        inflated = up(rows.sum(axis=1) * up(1.0 + gamma(_CHUNK, 2.0**-53)))
    return _fsum_up(inflated[rows.any(axis=1)])


def _fsum_up(values: FloatArray) -> float:
    try:
        total = math.fsum(values)
    except OverflowError:
        return math.inf
    # A sum of zeros is exact; all others may have been rounded to nearest.
    return math.nextafter(total, math.inf) if total > 0 else 0.0
