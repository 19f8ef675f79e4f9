"""ℓ_a(r) = Π_{b≠a} (r + s − b)/(a − b), s = w/2 − 1, 0 ≤ a < w, on the interval 0 ≤ r ≤ 1 in the middle of w nodes.

Λ_w = max_r Σ_a |ℓ_a(r)|. On the interval every ℓ_a has one sign, so the sum is a polynomial L of degree w − 1; it is
symmetric about 1/2, and grows up to there, as the Bernstein coefficients of L' on [0, 1/2] are all ≥ 0: Λ_w = L(1/2).
P_w = max_r Π_b |r + s − b| = Π_{j<w/2} ((2j + 1)/2)², as each (r + j)(j + 1 − r) is largest at r = 1/2.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import comb, prod

from sumformer.certificates.checker.verification import Unproved

_HALF = Fraction(1, 2)


@lru_cache
def lebesgue(width: int) -> Fraction:
    """Λ_w, proved as it is computed."""
    sums = [Fraction(0)] * width
    for a in range(width):
        coefficients = _lagrange(width, a)
        sign = 1 if _at(coefficients, _HALF) > 0 else -1
        sums = [total + sign * q for total, q in zip(sums, coefficients, strict=True)]
    if any(_at(sums, r) != _at(sums, 1 - r) for r in (Fraction(k, 2 * width) for k in range(width))):
        raise Unproved(f"the sum of |ℓ_a| is not symmetric for the width {width}")
    slope = [k * q * _HALF**k for k, q in enumerate(sums)][1:]  # of L'(t/2), up to a factor, in powers of t ∈ [0, 1]
    n = len(slope) - 1
    bernstein = [sum(Fraction(comb(i, k), comb(n, k)) * slope[k] for k in range(i + 1)) for i in range(n + 1)]
    if min(bernstein) < 0:
        raise Unproved(f"the sum of |ℓ_a| is not shown to grow up to the middle for the width {width}")
    return _at(sums, _HALF)


def node_polynomial(width: int) -> Fraction:
    """P_w."""
    return prod((Fraction(2 * j + 1, 2) ** 2 for j in range(width // 2)), start=Fraction(1))


def _lagrange(width: int, a: int) -> list[Fraction]:
    """The coefficients of ℓ_a."""
    out = [Fraction(1)]
    for b in range(width):
        if b != a:
            root, below = width // 2 - 1 - b, a - b
            shifted = [Fraction(0), *out]
            out = [(q + root * p) / below for q, p in zip(shifted, [*out, Fraction(0)], strict=True)]
    return out


def _at(coefficients: list[Fraction], r: Fraction) -> Fraction:
    return sum((q * r**k for k, q in enumerate(coefficients)), Fraction(0))
