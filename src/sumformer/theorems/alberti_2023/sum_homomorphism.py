"""Σ_j x^a y_j^b ↦ x^a p_b: a polynomial target written with sums goes straight into ℚ[x, p], not expanded in n."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from sumformer.algebra.orbit_sums import Degree
from sumformer.algebra.power_sum_polynomial import PowerSumPolynomial
from sumformer.algebra.rational_ring import RationalRing, terms_of
from sumformer.targets import Environment, Node, Reduce, evaluate, reductions
from sumformer.theorems.alberti_2023.polynomial_size import require_moderate, size_of
from sumformer.theorems.alberti_2023.polynomial_tree import RingOperations, share

Body = dict[Degree, dict[tuple[int, ...], Fraction]]
"""{b: {exponents of x and of inner sums: c}}, one body collected in powers of y."""


def sums_in_power_sums(node: Node, n: int, d: int) -> tuple[PowerSumPolynomial, ...]:
    """f(X)_1 of `as_polynomial(…)`, one σ for each coordinate, over the n − 1 others."""
    parts = reductions(node)
    bodies = {part: _collected(part, parts, d) for part in parts}
    betas = sorted({b for found in bodies.values() for body in found for b in body if any(b)})
    require_moderate(size_of(node, n, d, expanded=False), d + len(betas))
    ring = RationalRing(d + len(betas))
    x, place = ring.generators[:d], {beta: d + i for i, beta in enumerate(betas)}

    def power_sum(beta: Degree, others: bool) -> Any:
        """p_β over the others; the own x^β is added where the sum runs over all."""
        rest = ring.generators[place[beta]] if any(beta) else ring.constant(n - 1)
        return rest if others else rest + ring.product(dict(enumerate(beta)))

    inner: list[Any] = []
    values: dict[Reduce, tuple[Any, ...]] = {}
    for part in parts:
        others = part.kind.endswith("_others")
        scale = ring.constant(share(part, n))
        sums = [
            sum((_value(ring, terms, inner, d) * power_sum(b, others) for b, terms in body.items()), ring.constant(0))
            for body in bodies[part]
        ]
        values[part] = tuple(scale * s for s in sums)
        inner.extend(values[part])
    found = evaluate(node, RingOperations(ring.constant), Environment(tuple(x), None, values.__getitem__))
    return tuple(PowerSumPolynomial.collected(terms_of(element), betas, n - 1, d) for element in found)


def _collected(part: Reduce, parts: tuple[Reduce, ...], d: int) -> list[Body]:
    """Each coordinate of the body in powers of y, inner sums as symbols."""
    widths = [p.width for p in parts]
    ring = RationalRing(2 * d + sum(widths))
    x, y, symbols = ring.generators[:d], ring.generators[d : 2 * d], ring.generators[2 * d :]
    starts = {p: sum(widths[:i]) for i, p in enumerate(parts)}

    def symbol(inner: Reduce) -> tuple[Any, ...]:
        return tuple(symbols[starts[inner] : starts[inner] + inner.width])

    found = []
    for element in evaluate(part.body, RingOperations(ring.constant), Environment(tuple(x), tuple(y), symbol)):
        body: Body = {}
        for e, c in terms_of(element).items():
            body.setdefault(e[d : 2 * d], {})[e[:d] + e[2 * d :]] = c
        found.append(body)
    return found


def _value(ring: RationalRing, terms: dict[tuple[int, ...], Fraction], inner: list[Any], d: int) -> Any:
    """Σ c x^a Π inner^e."""
    by_sums: dict[tuple[int, ...], dict[tuple[int, ...], Fraction]] = {}
    for e, c in terms.items():
        padded = e[:d] + (0,) * (len(ring.generators) - d)
        by_sums.setdefault(e[d:], {})[padded] = c
    return sum(
        (
            math.prod((inner[i] ** k for i, k in enumerate(e) if k), start=ring.element(own))
            for e, own in by_sums.items()
        ),
        ring.constant(0),
    )
