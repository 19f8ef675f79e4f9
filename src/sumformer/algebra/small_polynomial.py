"""The naive twin for few terms: m̃(B ∪ {b}) = p_b m̃(B) − Σ_j m̃(B_j + b), remembered, in Python integers.

A handful of terms is done before numpy has started. The proof of the identity: all coefficients written into one
integer (x_k = 2^{b (D+1)^k}, every coefficient below 2^b in size), or, where that is long, modulo random primes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Final

from sumformer.algebra.expanded_polynomial import Expanded, ExpandedPolynomial
from sumformer.algebra.identity_proof import IdentityProof, Points, prove_small_zero
from sumformer.algebra.orbit_sums import Degree
from sumformer.algebra.power_sum_polynomial import Factors, PowerSumPolynomial
from sumformer.errors import CertificateError

Row = tuple[int, list[int], int]
"""A term of σ: the numbers of α and of the β, 0 for none, and the numerator."""

MOST_TERMS: Final = 150
MOST_TOKENS: Final = 10
_MOST_BITS: Final = 2**13


class SmallPolynomial:
    """f = Σ c_e x^e over `tokens` tokens of d coordinates, the first `own` of them apart from the permutations."""

    def __init__(self, polynomial: Expanded, tokens: int, d: int, own: int) -> None:
        self.tokens, self.d, self.own = tokens, d, own
        self.denominator = math.lcm(1, *(c.denominator for c in polynomial.values()))
        self.terms = [
            (tuple(zip(*[iter(e)] * d, strict=True)), c.numerator * (self.denominator // c.denominator))
            for e, c in polynomial.items()
            if c
        ]
        self.vectors = [set(column) for column in zip(*(e for e, _ in self.terms), strict=True)] or [set()] * tokens
        self.degree = max((sum(e) for e in polynomial), default=0)

    def in_power_sums(self) -> PowerSumPolynomial:
        """σ with f = σ(x; p); a polynomial that is not symmetric is refused with a witness."""
        m, zero = self.tokens - self.own, (0,) * self.d
        orbits: dict[tuple[Degree, tuple[Degree, ...]], list[int]] = {}
        for e, c in self.terms:
            parts = tuple(sorted(v for v in e[self.own :] if v != zero))
            orbits.setdefault((e[0] if self.own else zero, parts), []).append(c)
        total: dict[tuple[Degree, Factors], int] = {}
        scale = math.factorial(m)  # divisible by every product of multiplicities
        for (alpha, parts), found in orbits.items():
            repeated = math.prod(math.factorial(parts.count(v)) for v in set(parts))
            arrangements = math.factorial(m) // (repeated * math.factorial(m - len(parts)))
            if len(found) != arrangements or len(set(found)) > 1:
                self._refuse()
            coefficient = found[0] * (scale // repeated)
            for factors, k in augmented(parts).items():
                key = alpha, factors
                total[key] = total.get(key, 0) + coefficient * k
        return PowerSumPolynomial.over(self.denominator * scale, total, m, self.d)

    def prove(self, sigma: PowerSumPolynomial, source: random.Random | None = None) -> IdentityProof:
        """That f = σ ∘ power sums, or `CertificateError`."""
        degrees = [tuple(v) for v in sigma.degrees.tolist()]
        rows = list(zip(sigma.own.tolist(), sigma.factors.tolist(), sigma.numerators.tolist(), strict=True))
        total = [sum(v) for v in degrees]
        degree = max([self.degree, *(total[own] + sum(total[f] for f in factors) for own, factors, _ in rows)])
        each = max(1, sigma.m) ** sigma.factors.shape[1]
        size = sum(abs(c) for _, c in self.terms) * sigma.denominator
        bits = (size + sum(abs(c) for _, _, c in rows) * each * self.denominator).bit_length()
        if bits * (degree + 1) ** (self.tokens * self.d) <= _MOST_BITS:
            strides = [bits * (degree + 1) ** k for k in range(self.tokens * self.d)]
            shifts = [partial(_shift, strides[i : i + self.d]) for i in range(0, self.tokens * self.d, self.d)]
            # One integer, zero only if all coefficients are: as digits < 2^bits in size they cannot cancel.
            if self._difference(rows, degrees, sigma.denominator, shifts):
                raise CertificateError("the polynomials differ: their expansions have other coefficients", "identity")
            return IdentityProof("expansion", 0.0, 0, degree, bits)

        def difference(points: Points, p: int) -> int:
            return self._difference(rows, degrees, sigma.denominator, [partial(_power, x, p) for x in points])

        return prove_small_zero(difference, self.tokens, self.d, degree, bits, source)

    def _difference(
        self, rows: list[Row], degrees: list[Degree], denominator: int, monomials: Sequence[Callable[[Degree], int]]
    ) -> int:
        """denominators · (f − σ) at the point where token i has x^v = monomials[i](v)."""
        tables = [{v: monomial(v) for v in vectors} for vectors, monomial in zip(self.vectors, monomials, strict=True)]
        left = 0
        for e, c in self.terms:
            for table, v in zip(tables, e, strict=True):
                c *= table[v]
            left += c
        own = [monomials[0](v) for v in degrees] if self.own else [1]
        sums = [1, *(sum(monomial(v) for monomial in monomials[self.own :]) for v in degrees[1:])]
        right = 0
        for alpha, betas, c in rows:
            c *= own[alpha]
            for beta in betas:
                c *= sums[beta]
            right += c
        return left * denominator - right * self.denominator

    def _refuse(self) -> None:
        flat = {tuple(k for v in e for k in v): Fraction(c, self.denominator) for e, c in self.terms}
        ExpandedPolynomial.of(flat, self.tokens, self.d).orbits(self.own)
        raise AssertionError("two tests of symmetry disagree")


@lru_cache(maxsize=4096)
def augmented(parts: tuple[Degree, ...]) -> dict[Factors, int]:
    """m̃(parts) = Σ k Π p, as {(β_1 ≥ β_2 ≥ …): k}."""
    if not parts:
        return {(): 1}
    *rest, last = parts
    total = {tuple(sorted((*factors, last), reverse=True)): k for factors, k in augmented(tuple(rest)).items()}
    for j, part in enumerate(rest):
        joined = tuple(a + b for a, b in zip(part, last, strict=True))
        for factors, k in augmented(tuple(sorted((*rest[:j], joined, *rest[j + 1 :])))).items():
            total[factors] = total.get(factors, 0) - k
    return total


def _power(x: Sequence[int], p: int, exponents: Degree) -> int:
    value = 1
    for v, e in zip(x, exponents, strict=True):
        value = value * pow(v, e, p) % p
    return value


def _shift(strides: Sequence[int], exponents: Degree) -> int:
    return 1 << sum(s * e for s, e in zip(strides, exponents, strict=True))
