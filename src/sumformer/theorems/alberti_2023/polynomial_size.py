"""Of a polynomial, bounds only: number of terms, Σ|coefficients|, a common denominator, the degree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from sumformer.errors import RefusedError
from sumformer.targets import Environment, Node, evaluate, reductions
from sumformer.theorems.alberti_2023.polynomial_tree import RingOperations, share

MOST_TERMS: Final = 2_000_000


@dataclass(frozen=True)
class PolynomialSize:
    """At most `terms` terms of at most `degree`; Σ|c| ≤ norm; denominator · c ∈ ℤ for every coefficient c."""

    terms: int
    norm: Fraction
    denominator: int
    degree: int

    @property
    def bits(self) -> int:
        """Of Σ|denominator · c|, and of the denominator."""
        return math.ceil(self.norm * self.denominator).bit_length() + self.denominator.bit_length()

    def __add__(self, other: PolynomialSize) -> PolynomialSize:
        common = math.lcm(self.denominator, other.denominator)
        degree = max(self.degree, other.degree)
        return PolynomialSize(self.terms + other.terms, self.norm + other.norm, common, degree)

    def __sub__(self, other: PolynomialSize) -> PolynomialSize:
        return self + other

    def __neg__(self) -> PolynomialSize:
        return self

    def __mul__(self, other: PolynomialSize) -> PolynomialSize:
        denominator = self.denominator * other.denominator
        return PolynomialSize(self.terms * other.terms, self.norm * other.norm, denominator, self.degree + other.degree)

    def __pow__(self, k: int) -> PolynomialSize:
        terms = math.comb(self.terms + k - 1, k)
        return PolynomialSize(terms, self.norm**k, self.denominator**k, self.degree * k)


def size_of(node: Node, n: int, d: int, expanded: bool) -> PolynomialSize:
    """Of the largest coordinate of f(X)_1, X of n tokens: as a polynomial in them, or (not expanded) in x and the p_β.

    The number of terms is that of the form asked for; norm, denominator and degree are those in the tokens.
    """

    def constant(c: Fraction) -> PolynomialSize:
        return PolynomialSize(1, abs(c), c.denominator, 0)

    ops = RingOperations(constant)
    token = (PolynomialSize(1, Fraction(1), 1, 1),) * d
    values: dict[Any, tuple[PolynomialSize, ...]] = {}
    for part in reductions(node):
        others = part.kind.endswith("_others")
        count, copies = n - others, (n - others) if expanded else 2 - others
        body = evaluate(part.body, ops, Environment(token, token, values.__getitem__))
        times = share(part, n)
        values[part] = tuple(
            PolynomialSize(
                max(1, b.terms * copies), b.norm * count * times, b.denominator * times.denominator, b.degree
            )
            for b in body
        )
    found = evaluate(node, ops, Environment(token, None, values.__getitem__))
    return PolynomialSize(
        max(v.terms for v in found),
        max(v.norm for v in found),
        math.lcm(*(v.denominator for v in found)),
        max(v.degree for v in found),
    )


def require_moderate(size: PolynomialSize, variables: int) -> None:
    """Refuse to write out what would not fit: more terms than MOST_TERMS by both counts."""
    terms = min(size.terms, math.comb(size.degree + variables, variables))
    if terms > MOST_TERMS:
        reason = f"it may have {terms} terms, at most {MOST_TERMS} are written out; lower its degree, d or n"
        raise RefusedError("the polynomial is too large to write out", [reason])
