"""cos(2πt/L) and sin(2πt/L) for t = 0 … L − 1, each the float64 nearest to it, from whole numbers alone.

In units of 2⁻¹²⁰: π by Machin's 16 arctan(1/5) − 4 arctan(1/239), functions of an angle up to π/4 by their series. No
step errs by more than a unit, and no series has 60 steps, so what is rounded is within 2⁻¹¹⁰ of the exact value.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Final

ONE: Final = 1 << 120
ERROR: Final = 2.0**-54 + 2.0**-100
"""Of each stored value, absolutely."""


@lru_cache(maxsize=64)
def waves(length: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """All cosines and all sines."""
    pairs = [_wave(t, length) for t in range(length)]
    cosines, sines = zip(*pairs, strict=True)
    return tuple(_nearest(c) for c in cosines), tuple(_nearest(s) for s in sines)


def _wave(t: int, length: int) -> tuple[int, int]:
    """By reflections, of an angle of at most an eighth of the circle."""
    if 2 * t > length:
        c, s = _wave(length - t, length)
        return c, -s
    if 4 * t > length:
        c, s = _part(length - 2 * t, 2 * length)
        return -c, s
    return _part(t, length)


def _part(t: int, length: int) -> tuple[int, int]:
    """Up to a quarter of the circle."""
    if 8 * t > length:
        s, c = _small(length - 4 * t, 4 * length)
        return c, s
    c, s = _small(t, length)
    return c, s


def _small(t: int, length: int) -> tuple[int, int]:
    angle = 2 * _pi() * t // length
    values = [0, 0]
    term, k = ONE, 0
    while term:
        values[k % 2] += term if k % 4 < 2 else -term
        k += 1
        term = term * angle // (k * ONE)
    return values[0], values[1]


@lru_cache(maxsize=1)
def _pi() -> int:
    return 16 * _arctan_of_inverse(5) - 4 * _arctan_of_inverse(239)


def _arctan_of_inverse(q: int) -> int:
    total, power, k = 0, ONE // q, 0
    while power:
        total += (power if k % 2 == 0 else -power) // (2 * k + 1)
        power //= q * q
        k += 1
    return total


def _nearest(value: int) -> float:
    return float(Fraction(value, ONE))
