"""The naive twin for few terms: m̃(B ∪ {b}) = p_b m̃(B) − Σ_j m̃(B_j + b), remembered, in Python integers.

Done before numpy has started. Remembered between calls is what depends on exponents alone: their orbits, and m̃. The
proof of the identity reads every coefficient of f and of σ: all of them written into one integer (x_k = 2^{b (D+1)^k},
every coefficient below 2^b in size); where that is long, in a ring of polynomials or modulo a prime at a random point.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain, repeat
from operator import add, getitem, mul
from typing import Final

from sumformer.algebra.expanded_polynomial import Expanded, ExpandedPolynomial, exact, flat
from sumformer.algebra.identity_proof import IdentityProof, Points, expandable, prove_identity, prove_small_zero
from sumformer.algebra.orbit_sums import Degree
from sumformer.algebra.power_sum_polynomial import Factors, PowerSumPolynomial
from sumformer.errors import CertificateError

MOST_TERMS: Final = 1_000
"""Times d: beyond, arrays are as fast, and faster where nothing is remembered."""
MOST_TOKENS: Final = 10
_MOST_BITS: Final = 2**13
_FEW: Final = 150

_Table = dict[int, int] | list[int]


class SmallPolynomial:
    """f = Σ c_e x^e over `tokens` tokens of d coordinates, the first `own` of them apart from the permutations."""

    def __init__(self, polynomial: Expanded, tokens: int, d: int, own: int) -> None:
        self.tokens, self.d, self.own = tokens, d, own
        self.exponents = flat(polynomial, tokens, d)
        ratios = [c.as_integer_ratio() for c in exact(polynomial).values()]
        self.denominator = math.lcm(1, *{q for _, q in ratios})
        self.numerators = [p * (self.denominator // q) for p, q in ratios]
        members = map(representative, self._rows(), repeat(d), repeat(own))
        self.orbits = Counter(zip(members, self.numerators, strict=True))
        self.representatives = [e for e, _ in self.orbits]

    def in_power_sums(self) -> PowerSumPolynomial:
        """σ with f = σ(x; p); a polynomial that is not symmetric is refused with a witness."""
        m, d, own = self.tokens - self.own, self.d, self.own
        total: dict[tuple[Degree, Factors], int] = {}
        for (e, c), members in self.orbits.items():
            if not c:
                continue
            if members != arrangements(e, d, own):  # some are absent, or have another coefficient
                self._refuse()
            for key, k in orbit_sum(e, d, own):
                total[key] = total.get(key, 0) + c * k
        return PowerSumPolynomial.over(self.denominator * math.factorial(m), total, m, d)

    def prove(self, sigma: PowerSumPolynomial, source: random.Random | None = None) -> IdentityProof:
        """That f = σ ∘ power sums, or `CertificateError`."""
        degrees: list[list[int]] = sigma.degrees.tolist()
        numerators, columns = sigma.numerators.tolist(), [sigma.own.tolist(), *sigma.factors.T.tolist()]
        common = math.gcd(self.denominator, sigma.denominator)
        a, b = sigma.denominator // common, self.denominator // common  # f = σ if a · numerators = b · numerators
        each = max(1, sigma.m) ** sigma.factors.shape[1]
        bits = (a * sum(map(abs, self.numerators)) + b * each * sum(map(abs, numerators))).bit_length()
        degree = max(_weight(degrees, columns), *map(sum, self.representatives), 0)
        variables = self.tokens * self.d
        used = (
            range(degree + 1)
            if degree < 32
            else {0, *chain.from_iterable(degrees), *chain.from_iterable(self.representatives)}
        )

        def difference(powers: list[dict[int, int]]) -> int:
            """f − σ without denominators, where x_k^e = powers[k][e] for every coordinate x_k of every token."""
            tokens = [powers[i : i + self.d] for i in range(0, variables, self.d)]
            monomials = [[math.prod(map(getitem, y, v)) for v in degrees] for y in tokens]
            sums = [1, *map(sum, zip(*[of_y[1:] for of_y in monomials[self.own :]], strict=True))]
            first = monomials[0] if self.own else [1]
            left = _sum_of_products(self.numerators, powers, [self.exponents[k::variables] for k in range(variables)])
            right = _sum_of_products(numerators, [first, *repeat(sums, len(columns) - 1)], columns)
            return a * left - b * right

        if bits * (degree + 1) ** variables <= _MOST_BITS:
            strides = [bits * (degree + 1) ** k for k in range(variables)]
            # One integer, zero only if all coefficients are: as digits < 2^bits in size they cannot cancel.
            if difference([{e: 1 << e * s for e in used} for s in strides]):
                raise CertificateError("the polynomials differ: their expansions have other coefficients", "identity")
            return IdentityProof("expansion", 0.0, 0, degree, bits)

        if len(self.numerators) > _FEW and expandable(sigma):
            return prove_identity(self._expanded(), sigma, self.own, "expansion")

        def residue(points: Points, p: int) -> int:
            return difference([{e: pow(x, e, p) for e in used} for x in chain.from_iterable(points)])

        return prove_small_zero(residue, self.tokens, self.d, degree, bits, source)

    def _rows(self) -> Iterable[Degree]:
        """Every e, in plain integers whatever was given: tables are kept of them."""
        return zip(*[iter(self.exponents)] * (self.tokens * self.d), strict=True)

    def _expanded(self) -> ExpandedPolynomial:
        given = {e: Fraction(c, self.denominator) for e, c in zip(self._rows(), self.numerators, strict=True)}
        return ExpandedPolynomial.of(given, self.tokens, self.d)

    def _refuse(self) -> None:
        self._expanded().orbits(self.own)
        raise AssertionError("two tests of symmetry disagree")


@lru_cache(maxsize=2**14)
def representative(e: Degree, d: int, own: int) -> Degree:
    """The member of e's orbit whose others increase: the same for the whole orbit."""
    if d == 1:
        return (*e[:own], *sorted(e[own:]))
    vectors = _vectors(e, d)
    return tuple(chain(*vectors[:own], *sorted(vectors[own:])))


@lru_cache(maxsize=2**12)
def arrangements(e: Degree, d: int, own: int) -> int:
    """The size of e's orbit."""
    others = _vectors(e, d)[own:]
    return math.factorial(len(others)) // _multiplicities(others)


@lru_cache(maxsize=2**12)
def orbit_sum(e: Degree, d: int, own: int) -> tuple[tuple[tuple[Degree, Factors], int], ...]:
    """m! · Σ of x^e over its orbit, m others, as Σ k x^α Π p_β; m! is divisible by Π multiplicity! of the parts."""
    vectors, zero = _vectors(e, d), (0,) * d
    parts = tuple(sorted(v for v in vectors[own:] if v != zero))
    times = math.factorial(len(vectors) - own) // _multiplicities(parts)
    alpha = vectors[0] if own else zero
    return tuple(((alpha, factors), times * k) for factors, k in augmented(parts).items())


@lru_cache(maxsize=2**12)
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


def _multiplicities(parts: Sequence[Degree]) -> int:
    """Π over the parts that differ of (how often the part occurs)!."""
    return math.prod(math.factorial(parts.count(v)) for v in set(parts))


def _weight(degrees: list[list[int]], columns: list[list[int]]) -> int:
    """max_t of |α_t| + Σ_i |β_ti|: the degree of σ ∘ power sums, at most."""
    total = [sum(v) for v in degrees]
    weights: Iterable[int] = map(total.__getitem__, columns[0])
    for column in columns[1:]:
        weights = map(add, weights, map(total.__getitem__, column))
    return max(weights, default=0)


def _sum_of_products(values: Iterable[int], tables: Iterable[_Table], columns: Iterable[Sequence[int]]) -> int:
    """Σ_t values_t Π_k tables_k[columns_kt]."""
    for table, column in zip(tables, columns, strict=True):
        values = map(mul, values, map(table.__getitem__, column))
    return sum(values)


def _vectors(e: Sequence[int], d: int) -> list[Degree]:
    return list(zip(*[iter(e)] * d, strict=True))
