"""Interpolation at w equidistant nodes, between the two in the middle: |g − Ig| ≤ sup|g^(w)|/w! · h^w · P_w, ‖I‖ ≤ Λ_w.

P_w = max_r Π_b |r + s − b| = Π_{j<w/2} ((2j + 1)/2)², as each (r + j)(j + 1 − r) is largest at r = 1/2;  s = w/2 − 1.
Λ_w = max_r Σ_a |ℓ_a(r)|: on [0, 1] every ℓ_a has one sign, so this is a polynomial, and no larger than the largest of
its Bernstein coefficients on pieces of [0, 1]. All of it in exact fractions.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import comb, prod

PIECES = 8


def node_polynomial(width: int) -> Fraction:
    """P_w."""
    return prod((Fraction(2 * j + 1, 2) ** 2 for j in range(width // 2)), start=Fraction(1))


@cache
def lebesgue(width: int) -> float:
    """Λ_w, rounded up."""
    total = [Fraction(0)] * width
    for a in range(width):
        basis = _lagrange(width, a)
        sign = 1 if _value(basis, Fraction(1, 2)) > 0 else -1
        total = [t + sign * c for t, c in zip(total, basis, strict=True)]
    pieces = [(Fraction(i, PIECES), Fraction(1, PIECES)) for i in range(PIECES)]
    return float(max(max(_bernstein(total, start, size)) for start, size in pieces)) * (1 + 2.0**-50)


def _lagrange(width: int, a: int) -> list[Fraction]:
    """The coefficients of ℓ_a(r), lowest first."""
    out = [Fraction(1)]
    for b in range(width):
        if b != a:
            shift, scale = Fraction(width // 2 - 1 - b), Fraction(1, a - b)
            out = [
                scale * (shift * low + high) for low, high in zip([*out, Fraction(0)], [Fraction(0), *out], strict=True)
            ]
    return out


def _value(coefficients: list[Fraction], r: Fraction) -> Fraction:
    value = Fraction(0)
    for c in reversed(coefficients):
        value = value * r + c
    return value


def _bernstein(coefficients: list[Fraction], start: Fraction, size: Fraction) -> list[Fraction]:
    """Of q(start + size·τ), τ ∈ [0, 1]: b_i = Σ_{k≤i} C(i, k)/C(n, k) · q_k."""
    degree = len(coefficients) - 1
    moved = [Fraction(0)] * (degree + 1)
    for power, c in enumerate(coefficients):
        for k in range(power + 1):
            moved[k] += c * comb(power, k) * start ** (power - k) * size**k
    return [
        sum((Fraction(comb(i, k), comb(degree, k)) * moved[k] for k in range(i + 1)), start=Fraction(0))
        for i in range(degree + 1)
    ]
