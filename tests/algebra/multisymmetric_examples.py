"""Polynomials with a known symmetry, as {exponents: coefficient}."""

from __future__ import annotations

import itertools
from fractions import Fraction

from hypothesis import strategies as st


def symmetrised(orbits, tokens, own):
    """{(own exponents, others' exponents): c} along all arrangements of the others."""
    polynomial = {}
    for (alpha, parts), c in orbits.items():
        filled = [*parts, *[(0,) * len(parts[0])] * (tokens - own - len(parts))]
        for arrangement in set(itertools.permutations(filled)):
            polynomial[sum((alpha, *arrangement) if own else arrangement, ())] = c
    return polynomial


@st.composite
def semi_invariants(draw, max_tokens=4, max_d=3, own=1):
    """(polynomial, tokens, d)."""
    tokens, d = draw(st.integers(1 + own, max_tokens)), draw(st.integers(1, max_d))
    degrees = st.tuples(*[st.integers(0, 2)] * d)
    parts = st.lists(degrees, min_size=tokens - own, max_size=tokens - own).map(lambda v: tuple(sorted(v)))
    keys = st.tuples(degrees if own else st.just((0,) * d), parts)
    fractions = st.fractions(-50, 50, max_denominator=12).filter(bool)
    orbits = draw(st.dictionaries(keys, fractions, max_size=5))
    return symmetrised(orbits, tokens, own), tokens, d


def dense(tokens, d, degree):
    """Every monomial up to `degree`; the coefficient depends on the orbit only."""
    polynomial = {}
    for e in itertools.product(range(degree + 1), repeat=tokens * d):
        if sum(e) <= degree:
            rows = [e[i * d : (i + 1) * d] for i in range(tokens)]
            weight = sum(hash((rows[0], row)) % 89 for row in rows[1:]) + sum(rows[0])
            polynomial[e] = Fraction(weight % 41 - 20 or 7, 1 + weight % 5)
    return polynomial


def value(polynomial, X):
    """Σ c x^e, exactly."""
    flat = [v for row in X for v in row]
    total = Fraction(0)
    for e, c in polynomial.items():
        term = Fraction(c)
        for v, k in zip(flat, e, strict=True):
            term *= Fraction(v) ** k
        total += term
    return total
