"""p_β with |β| > m from smaller ones: 0 = m̃(β_1, …, β_{m+1}), there being only m others, for β = β_1 + … + β_{m+1}.

m̃ is (−1)^m m! p_β + products of power sums of smaller degree, so degree by degree |β| ≤ m is enough (A 2.12).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from sumformer.algebra.multisymmetric import add_degrees
from sumformer.algebra.orbit_sums import Degree, DegreeTable, to_power_sums
from sumformer.algebra.power_sum_polynomial import Factors, PowerSumPolynomial
from sumformer.algebra.rational_ring import RationalRing, terms_of
from sumformer.errors import InputError


def within(sigma: PowerSumPolynomial, limit: int) -> PowerSumPolynomial:
    """σ rewritten in the p_β with |β| ≤ limit, limit ≥ m; σ itself where that is so already."""
    if limit < sigma.m:
        raise InputError(f"power sums of degree at most {limit} do not generate: expected a limit ≥ m = {sigma.m}")
    high = [beta for beta in sigma.betas if sum(beta) > limit]
    if not high:
        return sigma
    relations = _relations(high, sigma.m, limit, sigma.d)
    low = {b for b in sigma.betas if sum(b) <= limit}
    low |= {b for terms in relations.values() for factors in terms for b in factors if sum(b) <= limit}
    place = {beta: sigma.d + i for i, beta in enumerate(sorted(low))}
    ring = RationalRing(sigma.d + len(low))
    known: dict[Degree, Any] = {beta: ring.generators[i] for beta, i in place.items()}
    for beta in sorted(relations, key=sum):
        known[beta] = sum((_value(ring, known, f, c) for f, c in relations[beta].items()), ring.constant(0))
    # σ = Σ over products E of high power sums of (what stands before E) · E.
    before: dict[Factors, dict[tuple[int, ...], Fraction]] = {}
    for (alpha, betas), c in sigma.terms.items():
        exponents = [*alpha, *[0] * len(low)]
        for beta in betas:
            if beta in place:
                exponents[place[beta]] += 1
        before.setdefault(tuple(b for b in betas if b not in place), {})[tuple(exponents)] = c
    parts = (ring.element(terms) * _value(ring, known, E, Fraction(1)) for E, terms in before.items())
    return PowerSumPolynomial.collected(terms_of(sum(parts, ring.constant(0))), sorted(low), sigma.m, sigma.d)


def _relations(high: Iterable[Degree], m: int, limit: int, d: int) -> dict[Degree, dict[Factors, Fraction]]:
    """p_β = Σ c Π p, for the β given and all that occur on the way with |β| > limit."""
    found: dict[Degree, dict[Factors, Fraction]] = {}
    todo = sorted(set(high))
    while todo:
        table = DegreeTable(d)
        own = np.array([table.number(beta) for beta in todo], dtype=np.int64)  # a label that says which relation it is
        parts = np.array([[table.number(part) for part in _split(beta, m + 1)] for beta in todo], dtype=np.int64)
        exact = np.int64 if m < 20 else object
        values = np.ones((len(todo), 1), dtype=exact)
        labels, factors, weights = to_power_sums(table, own, parts, values, m + 1, add_degrees)
        leading = (-1) ** m * math.factorial(m)
        found |= {beta: {} for beta in todo}
        for label, row, w in zip(labels.tolist(), factors.tolist(), weights[:, 0].tolist(), strict=True):
            beta, product = table.vectors[label], tuple(table.vectors[f] for f in row if f)
            if product != (beta,):
                found[beta][product] = Fraction(-w, leading)
        todo = sorted({b for t in found.values() for f in t for b in f if sum(b) > limit} - found.keys())
    return found


def _split(beta: Degree, k: int) -> list[Degree]:
    """β = k − 1 unit vectors and the rest."""
    rest, parts = list(beta), []
    for _ in range(k - 1):
        c = int(np.argmax(rest))
        rest[c] -= 1
        parts.append(tuple(int(i == c) for i in range(len(beta))))
    return [tuple(rest), *parts]


def _value(ring: RationalRing, known: dict[Degree, Any], factors: Factors, c: Fraction) -> Any:
    return math.prod((known[b] for b in factors), start=ring.constant(c))
