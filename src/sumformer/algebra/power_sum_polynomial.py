"""σ(x; p) = Σ_t c_t x^{α_t} Π_i p_{β_ti}, p_β = Σ_j y_j^β over m others: exact, a common denominator for all c_t."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain, zip_longest
from typing import Final

import numpy as np

from sumformer.algebra.modular import monomial_values, residues, times
from sumformer.algebra.orbit_sums import Degree, IntArray, Values

Factors = tuple[Degree, ...]

_MOST_REMEMBERED: Final = 256


@dataclass(frozen=True, eq=False)
class PowerSumPolynomial:
    """`own` (terms,) and `factors` (terms, r) number the rows of `degrees`; number 0 is the zero vector: no factor."""

    m: int
    d: int
    degrees: IntArray
    own: IntArray
    factors: IntArray
    numerators: Values
    denominator: int

    @classmethod
    def of(cls, terms: Mapping[tuple[Degree, Factors], Fraction], m: int, d: int) -> PowerSumPolynomial:
        """From {(α, (β_1, β_2, …)): c}."""
        denominator = math.lcm(1, *(c.denominator for c in terms.values()))
        integers = {key: c.numerator * (denominator // c.denominator) for key, c in terms.items()}
        return cls.over(denominator, integers, m, d)

    @classmethod
    def over(
        cls, denominator: int, integers: Mapping[tuple[Degree, Factors], int], m: int, d: int
    ) -> PowerSumPolynomial:
        """From {(α, (β_1, β_2, …)): denominator · c}."""
        kept = integers if all(integers.values()) else {key: c for key, c in integers.items() if c}
        number = numbered if len(kept) <= _MOST_REMEMBERED else numbered.__wrapped__
        return cls(m, d, *number(tuple(kept), d), np.array([*kept.values()], dtype=object), denominator)

    @classmethod
    def collected(
        cls, terms: Mapping[tuple[int, ...], Fraction], betas: Sequence[Degree], m: int, d: int
    ) -> PowerSumPolynomial:
        """From {exponents of x, then of p_β for the β listed: c}."""
        found = {
            (e[:d], tuple(b for b, k in zip(betas, e[d:], strict=True) if k for _ in range(k))): c
            for e, c in terms.items()
        }
        return cls.of(found, m, d)

    @cached_property
    def terms(self) -> dict[tuple[Degree, Factors], Fraction]:
        """{(α, (β_1 ≥ β_2 ≥ …)): c}."""
        degrees = [tuple(row) for row in self.degrees.tolist()]
        found: dict[tuple[Degree, Factors], Fraction] = {}
        rows = zip(self.own.tolist(), self.factors.tolist(), self.numerators.tolist(), strict=True)
        for own, factors, numerator in rows:
            key = degrees[own], tuple(sorted((degrees[f] for f in factors if f), reverse=True))
            found[key] = found.get(key, Fraction(0)) + Fraction(numerator, self.denominator)
        return {key: c for key, c in found.items() if c}

    @cached_property
    def betas(self) -> tuple[Degree, ...]:
        """The β whose power sums occur, smallest degree first: φ(y) = (y^β)_β."""
        used = [tuple(row) for row in self.degrees[np.unique(self.factors)].tolist()]
        return tuple(sorted((b for b in used if any(b)), key=lambda b: (sum(b), b)))

    @property
    def products(self) -> int:
        """max_t of the number of power sums multiplied: the degree of ψ in Σ."""
        return int(np.count_nonzero(self.factors, axis=1).max(initial=0))

    def __len__(self) -> int:
        return len(self.own)

    def evaluate(self, x: Sequence[Fraction], others: Sequence[Sequence[Fraction]]) -> Fraction:
        """σ(x; Σ_j φ(y_j)), exactly."""
        sums = {beta: sum((_monomial(y, beta) for y in others), Fraction(0)) for beta in self.betas}
        values = (
            c * _monomial(x, alpha) * math.prod((sums[b] for b in betas), start=Fraction(1))
            for (alpha, betas), c in self.terms.items()
        )
        return sum(values, Fraction(0))

    def modular(self, x: Sequence[int], others: Sequence[Sequence[int]], p: int) -> int:
        """denominator · σ modulo p."""
        own = monomial_values(self.degrees, np.array([x], dtype=np.uint64), p)[0]
        sums = monomial_values(self.degrees, np.array(others, dtype=np.uint64).reshape(-1, self.d), p).sum(axis=0) % p
        sums[0] = 1
        value = times(residues(self.numerators, p), own[self.own], p)
        for column in self.factors.T:
            value = times(value, sums[column], p)
        return int(value.sum() % p)

    def __str__(self) -> str:
        """As in x**2*p[1] - 1/3*p[1]**3."""
        text = "".join(_term(alpha, betas, c) for (alpha, betas), c in self.terms.items())
        return text.removeprefix(" + ").replace(" - ", "-", text.startswith(" - ")) or "0"


@lru_cache(maxsize=64)
def numbered(terms: tuple[tuple[Degree, Factors], ...], d: int) -> tuple[IntArray, IntArray, IntArray]:
    """`degrees`, `own` and `factors` of the terms, read-only."""
    zero = (0,) * d
    columns = [[alpha for alpha, _ in terms], *zip_longest(*[betas for _, betas in terms], fillvalue=zero)]
    number = {v: i for i, v in enumerate(dict.fromkeys(chain((zero,), *columns)))}
    numbers = np.array([number[v] for column in columns for v in column], dtype=np.int64)
    degrees, table = np.array([*number], dtype=np.int64), numbers.reshape(len(columns), len(terms)).T
    degrees.flags.writeable = table.flags.writeable = False
    return degrees, table[:, 0], table[:, 1:]


def _monomial(x: Sequence[Fraction], exponents: Degree) -> Fraction:
    return math.prod((Fraction(v) ** e for v, e in zip(x, exponents, strict=True) if e), start=Fraction(1))


def _term(alpha: Degree, betas: Factors, c: Fraction) -> str:
    """With its sign in front."""
    powers = {f"x[{i}]" if len(alpha) > 1 else "x": a for i, a in enumerate(alpha)}
    powers |= {f"p[{','.join(map(str, b))}]": betas.count(b) for b in betas}
    factors = [name if k == 1 else f"{name}**{k}" for name, k in powers.items() if k]
    size = [str(abs(c))] if abs(c) != 1 or not factors else []
    return (" - " if c < 0 else " + ") + "*".join(size + factors)
