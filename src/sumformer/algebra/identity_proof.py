"""f(x; y_1, …, y_m) = σ(x; Σ_j φ(y_j)) as polynomials: proved by expansion, or at random points modulo random primes.

Modulo p: if f ≠ σ, their difference times the denominators is an integer polynomial with a coefficient of at most B
bits, not 0. Of more than 5·10⁷ primes in [2³⁰, 2³¹) at most B/30 divide it; for the others a uniform point is a zero
with probability ≤ degree/p (Schwartz–Zippel). Rounds are independent, so the probabilities multiply.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from sumformer.algebra.expanded_polynomial import ExpandedPolynomial
from sumformer.algebra.modular import PRIMES, SMALLEST, random_prime
from sumformer.algebra.power_sum_polynomial import PowerSumPolynomial
from sumformer.algebra.rational_ring import RationalRing, available, terms_of
from sumformer.errors import CertificateError, RefusedError

Method = Literal["expansion", "modular"]
Points = Sequence[Sequence[int]]
Residue = Callable[[Points, int], int]

_DRAW: Final = random.Random()  # seeded by the operating system
_MERSENNE: Final = (61, 89, 127, 521)  # k for which 2^k − 1 is prime
FAILURE: Final = 2.0**-40
"""Rounds are added until the probability of accepting a false identity is below this; what was reached is stated."""
SMALL: Final = 1_000
"""Expanded when the products of power sums in σ, multiplied out, have at most so many terms."""


@dataclass(frozen=True)
class IdentityProof:
    """How the identity was proved; `failure_probability` bounds that of accepting a false one, 0 for expansion."""

    method: Method
    failure_probability: float
    rounds: int
    degree: int
    bits: int

    def __str__(self) -> str:
        if self.method == "expansion":
            return "proved by expansion"
        return f"proved modulo {self.rounds} random primes, probability of error below {self.failure_probability:.1e}"


def prove_identity(
    f: ExpandedPolynomial,
    sigma: PowerSumPolynomial,
    own: int = 1,
    method: Method | None = None,
    source: random.Random | None = None,
) -> IdentityProof:
    """A proof that f = σ ∘ power sums, or `CertificateError`. `own` = 0 when f has no own token."""
    if method is None:
        method = "expansion" if expandable(sigma) else "modular"
    if method == "expansion":
        return _by_expansion(f, sigma, own)
    left = sum(map(abs, f.numerators.tolist())) * sigma.denominator
    bits = (left + size(sigma) * f.denominator).bit_length()

    def difference(points: Points, p: int) -> int:
        x = points[0] if own else [0] * sigma.d
        return f.modular(points, p) * sigma.denominator - sigma.modular(x, points[own:], p) * f.denominator

    return prove_zero(difference, sigma.m + own, sigma.d, max(f.degree, weight(sigma)), bits, source)


def prove_zero(
    residue: Residue,
    tokens: int,
    d: int,
    degree: int,
    bits: int,
    source: random.Random | None = None,
    avoid: int = 1,
) -> IdentityProof:
    """That an integer polynomial of that degree, with coefficients of at most so many bits, is 0.

    Primes that divide `avoid`, a number of at most `bits` bits, are not drawn: too few to matter in the 5·10⁷.
    """
    draw = source or _DRAW
    chance = bits / 30 / PRIMES + degree / SMALLEST
    if chance > 2.0**-8:
        raise RefusedError("modular proof", [f"degree {degree} with coefficients of {bits} bits is too large for it"])
    rounds = math.ceil(math.log2(FAILURE) / math.log2(chance)) if chance else 1
    for _ in range(rounds):
        p = next(p for p in iter(lambda: random_prime(draw), 0) if avoid % p)
        points = [[draw.randrange(p) for _ in range(d)] for _ in range(tokens)]
        if residue(points, p) % p:
            raise CertificateError(f"the polynomials differ modulo {p} at {points}", term="identity")
    return IdentityProof("modular", chance**rounds * (1 + 2.0**-40), rounds, degree, bits)


def prove_small_zero(
    residue: Residue, tokens: int, d: int, degree: int, bits: int, source: random.Random | None = None
) -> IdentityProof:
    """As `prove_zero`, where `residue` takes any prime: one larger than every coefficient divides none, one round."""
    p = next((2**k - 1 for k in _MERSENNE if bits < k and degree <= 2.0**k * FAILURE / 2), None)
    if p is None:
        return prove_zero(residue, tokens, d, degree, bits, source)
    draw = source or _DRAW
    points = [[draw.randrange(p) for _ in range(d)] for _ in range(tokens)]
    if residue(points, p) % p:
        raise CertificateError(f"the polynomials differ modulo {p} at {points}", term="identity")
    return IdentityProof("modular", degree / p, 1, degree, bits)


def weight(sigma: PowerSumPolynomial) -> int:
    """The degree of σ ∘ power sums as a polynomial in the tokens, at most."""
    degrees = sigma.degrees.sum(axis=1)
    return int((degrees[sigma.own] + degrees[sigma.factors].sum(axis=1)).max(initial=0))


def size(sigma: PowerSumPolynomial) -> int:
    """A bound of the sum of the absolute coefficients of denominator · σ ∘ power sums: each p_β has m terms."""
    total: int = sum(map(abs, sigma.numerators.tolist()))
    each: int = max(1, sigma.m) ** sigma.products
    return total * each


def expandable(sigma: PowerSumPolynomial) -> bool:
    """Whether Σ_t m^{number of factors} is small, and there is a ring to expand in."""
    counts = np.count_nonzero(sigma.factors, axis=1).tolist()
    return sum([max(1, sigma.m) ** k for k in counts]) <= SMALL and available()


def _by_expansion(f: ExpandedPolynomial, sigma: PowerSumPolynomial, own: int) -> IdentityProof:
    d, tokens = sigma.d, sigma.m + own
    ring = RationalRing(tokens * d)

    def monomial(token: int, exponents: Sequence[int]) -> Any:
        return ring.product({token * d + c: e for c, e in enumerate(exponents)})

    sums = {b: sum((monomial(j, b) for j in range(own, tokens)), ring.constant(0)) for b in sigma.betas}
    total = ring.constant(0)
    for (alpha, betas), c in sigma.terms.items():
        term = monomial(0, alpha) * ring.constant(c) if own else ring.constant(c)
        for beta in betas:
            term = term * sums[beta]
        total = total + term
    vectors = f.table.vectors
    rows = zip(f.exponents.tolist(), f.numerators.tolist(), strict=True)
    written = {tuple(e for v in row for e in vectors[v]): int(c) for row, c in rows}
    expanded = {e: c * f.denominator for e, c in terms_of(total).items()}
    if expanded != written:
        wrong = next(e for e in {**expanded, **written} if expanded.get(e) != written.get(e))
        raise CertificateError(f"the polynomials differ in the coefficient of exponents {wrong}", term="identity")
    return IdentityProof("expansion", 0.0, 0, max(f.degree, weight(sigma)), 0)
