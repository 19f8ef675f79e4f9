"""f = Σ_e c_e x_1^{e_1} ⋯ x_k^{e_k}, written out over k tokens x_i ∈ ℝ^d, and its orbits under permuting all but some.

Invariance is read off: c_e is the same along an orbit and no member of it is absent; else two exponents bear witness.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any, Final

import numpy as np

from sumformer.algebra.modular import monomial_values, residues, times
from sumformer.algebra.orbit_sums import Degree, DegreeTable, IntArray, Values, classes, multiplicities
from sumformer.errors import InputError, NotSymmetricError, ShapeError

WORD: Final = 2**62  # int64, with a bit to spare

Expanded = Mapping[tuple[int, ...], Any]
"""{exponents: coefficient}, the exponents of token 1, then those of token 2, …; int or Fraction coefficients."""


@dataclass(frozen=True, eq=False)
class ExpandedPolynomial:
    """`exponents` (terms, tokens) number the vectors of `table`; the coefficient is numerator / denominator."""

    table: DegreeTable
    exponents: IntArray
    numerators: Values
    denominator: int

    @classmethod
    def of(cls, polynomial: Expanded, tokens: int, d: int) -> ExpandedPolynomial:
        exponents = np.array(flat(polynomial, tokens, d), dtype=np.int64).reshape(len(polynomial), tokens, d)
        numerators, denominator = _over_one_denominator(list(exact(polynomial).values()))
        kept, table = numerators != 0, DegreeTable(d)
        if not kept.all():
            exponents, numerators = exponents[kept], numerators[kept]
        return cls(table, table.numbers(exponents), numerators, denominator)

    @property
    def degree(self) -> int:
        """The total degree."""
        return int(self.table.array().sum(axis=1)[self.exponents].sum(axis=1).max(initial=0))

    def modular(self, points: Sequence[Sequence[int]], p: int) -> int:
        """denominator · f(points) modulo p."""
        values = monomial_values(self.table.array(), np.array(points, dtype=np.uint64), p)
        total = residues(self.numerators, p)
        for token, column in zip(values, self.exponents.T, strict=True):
            total = times(total, token[column], p)
        return int(total.sum() % p)

    def orbits(self, own: int) -> tuple[IntArray, IntArray, Values, list[int]]:
        """Orbits under permuting the tokens after the first `own`: those tokens' numbers, the others' numbers in
        decreasing order, the coefficients' numerators, Π multiplicity! of the parts that are not 0."""
        keys = self.exponents.copy()
        keys[:, own:] = -np.sort(-keys[:, own:], axis=1)
        order, starts = classes(keys)
        first = order[starts]
        sizes = np.diff(starts, append=len(keys))
        ordered = self.numerators[order]
        if len(starts) and bool((ordered != np.repeat(ordered[starts], sizes)).any()):
            self._refuse(own)
        parts = keys[first, own:]
        repeated = multiplicities(parts)
        m = parts.shape[1]
        zeros = m - np.count_nonzero(parts, axis=1)
        full = [math.factorial(m) // (t * math.factorial(z)) for t, z in zip(repeated, zeros.tolist(), strict=True)]
        if sizes.tolist() != full:
            self._refuse(own)
        return keys[first, :own], parts, self.numerators[first], repeated

    def _refuse(self, own: int) -> None:
        """Neighbouring tokens exchanged connect an orbit, so some member differs from such a neighbour."""
        known = dict(zip(map(tuple, self.exponents.tolist()), self.numerators.tolist(), strict=True))
        for row, value in known.items():
            for i in range(own, len(row) - 1):
                other = (*row[:i], row[i + 1], row[i], *row[i + 2 :])
                if known.get(other, 0) != value:
                    pair = tuple(tuple(chain.from_iterable(self.table.vectors[v] for v in e)) for e in (row, other))
                    values = tuple(Fraction(int(known.get(e, 0)), self.denominator) for e in (row, other))
                    raise NotSymmetricError(pair, values, (i, i + 1))


def flat(exponents: Collection[Degree], tokens: int, d: int) -> array[int]:
    """The exponents one after another, once they have the right length and are integers ≥ 0."""
    lengths = set(map(len, exponents)) - {tokens * d}
    if lengths:
        raise ShapeError("polynomial", f"exponents of {tokens} tokens × {d} coordinates", (lengths.pop(),))
    try:
        return array("I", chain.from_iterable(exponents))
    except (TypeError, OverflowError) as error:
        reason = "expected integers from 0 to 2^32 − 1 as exponents, got a negative, larger or fractional one"
        raise InputError(f"polynomial: {reason}") from error


def exact(polynomial: Expanded) -> Expanded:
    """The polynomial, once its coefficients are exact."""
    inexact = [kind for kind in set(map(type, polynomial.values())) if not issubclass(kind, int | Fraction)]
    if inexact:
        wrong = inexact[0].__name__
        raise InputError(f"polynomial: expected int or Fraction coefficients, got {wrong}; Fraction(c) is exact")
    return polynomial


def _over_one_denominator(coefficients: list[Any]) -> tuple[Values, int]:
    ratios = [c.as_integer_ratio() for c in coefficients]
    denominator = math.lcm(1, *{q for _, q in ratios})
    return integers([p * (denominator // q) for p, q in ratios]), denominator


def integers(values: list[int]) -> Values:
    """int64 where all fit with a bit to spare, else Python integers."""
    fit = min(values, default=0) > -WORD and max(values, default=0) < WORD
    return np.array(values, dtype=np.int64 if fit else object)
