"""Tables kept between calls hold exponents only, and none of them is believed: a wrong one is caught by the proof."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multisymmetric_examples import dense, semi_invariants, value

from sumformer.algebra import power_sum_polynomial, small_polynomial
from sumformer.algebra.expanded_polynomial import ExpandedPolynomial
from sumformer.algebra.small_polynomial import SmallPolynomial, arrangements, orbit_sum, representative
from sumformer.errors import CertificateError, InputError, NotSymmetricError, ShapeError

CASES = [(3, 1, 3), (4, 1, 4), (6, 1, 6), (3, 2, 3)]


def proved(polynomial, tokens, d, own=1):
    small = SmallPolynomial(polynomial, tokens, d, own)
    sigma = small.in_power_sums()
    return sigma, small.prove(sigma)


@pytest.mark.parametrize(("tokens", "d", "degree"), CASES)
def test_a_wrong_orbit_sum_is_caught(tokens, d, degree, monkeypatch):
    polynomial = dense(tokens, d, degree)
    orbits = SmallPolynomial(polynomial, tokens, d, own=1).representatives
    for e in orbits[:: max(1, len(orbits) // 12)]:
        right = orbit_sum(e, d, 1)
        for t, by in itertools.product(range(len(right)), (1, -2, 2**61 - 1)):
            key, k = right[t]
            wrong = [*right[:t], (key, k + by), *right[t + 1 :]]
            monkeypatch.setattr(
                small_polynomial, "orbit_sum", lambda f, *a, e=e, w=wrong: w if f == e else orbit_sum(f, *a)
            )
            with pytest.raises(CertificateError, match="differ"):
                proved(polynomial, tokens, d)


@pytest.mark.parametrize(("tokens", "d", "degree"), CASES)
def test_a_wrong_numbering_of_power_sums_is_caught(tokens, d, degree, monkeypatch):
    polynomial, numbered = dense(tokens, d, degree), power_sum_polynomial.numbered

    def renumbered(terms, d):
        degrees, own, factors = numbered(terms, d)
        wrong = factors.copy()
        t = int(np.argmax(wrong[:, 0] > 0))
        wrong[t, 0] = wrong[t, 0] % (len(degrees) - 1) + 1
        return degrees, own, wrong

    monkeypatch.setattr(power_sum_polynomial, "numbered", renumbered)
    with pytest.raises(CertificateError, match="differ"):
        proved(polynomial, tokens, d)


@pytest.mark.parametrize("tokens", [3, 6])
def test_a_wrong_size_of_an_orbit_lets_nothing_through(tokens, monkeypatch):
    lonely = {(0, 1, *[0] * (tokens - 2)): Fraction(1, 3), (2, *[0] * (tokens - 1)): 1}
    with pytest.raises(NotSymmetricError):
        proved(lonely, tokens, 1)
    monkeypatch.setattr(small_polynomial, "arrangements", lambda *_: 1)
    with pytest.raises(CertificateError, match="differ"):
        proved(lonely, tokens, 1)


@given(semi_invariants(), st.fractions(-9, 9, max_denominator=5).filter(bool))
@settings(max_examples=40, deadline=None)
def test_no_coefficient_is_remembered(example, factor):
    polynomial, tokens, d = example
    X = [[Fraction(3 * i * i - 2 * c, 5) for c in range(d)] for i in range(tokens)]
    for scaled in (polynomial, {e: c * factor for e, c in polynomial.items()}, polynomial):
        sigma, proof = proved(scaled, tokens, d)
        assert sigma.evaluate(X[0], X[1:]) == value(scaled, X)
        assert proof.failure_probability < 2.0**-40


@given(st.integers(2, 5), st.integers(1, 2), st.integers(0, 1), st.data())
@settings(max_examples=60, deadline=None)
def test_orbits_are_those_of_the_group(tokens, d, own, data):
    e = data.draw(st.tuples(*[st.integers(0, 2)] * (tokens * d)))
    rows = [e[i * d : (i + 1) * d] for i in range(tokens)]
    orbit = {sum((*rows[:own], *others), ()) for others in itertools.permutations(rows[own:])}
    assert {representative(f, d, own) for f in orbit} == {representative(e, d, own)} <= orbit
    assert arrangements(representative(e, d, own), d, own) == len(orbit)


READERS = {
    "arrays": ExpandedPolynomial.of,
    "naive": lambda f, tokens, d: SmallPolynomial(f, tokens, d, own=1),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("c", [1, 0])
def test_what_cannot_be_a_polynomial_is_refused_whatever_was_read_before(reader, c):
    for _ in range(2):
        for wrong in ((1.0, 0), (0.5, 0), (-1, 2), (2**40, 0), ("1", 0)):
            with pytest.raises(InputError, match="exponents"):
                reader({wrong: c, (0, 1): 1}, 2, 1)
        with pytest.raises(ShapeError, match="2 tokens × 1"):
            reader({(1, 2, 3): c}, 2, 1)
        with pytest.raises(InputError, match="Fraction"):
            reader({(0, 1): 0.5 * c, (1, 0): 0}, 2, 1)
        reader({(1, 0): 1, (0, 1): 1}, 2, 1)


def test_integers_of_numpy_leave_no_trace():
    small_polynomial.representative.cache_clear()
    big = Fraction(3**50, 7)
    for kind in (np.int64, np.uint8, int):
        polynomial = {tuple(map(kind, e)): big for e in itertools.product(range(3), repeat=3)}
        sigma, _ = proved(polynomial, 3, 1)
        assert all(type(k) is int for e in SmallPolynomial(polynomial, 3, 1, 1).representatives for k in e)
        assert sigma.evaluate([Fraction(2)], [[Fraction(1, 2)], [Fraction(3)]]) == 7 * (1 + Fraction(3, 4)) * 13 * big


def test_terms_with_coefficient_zero_are_no_terms():
    sigma, proof = proved({(0, 7, 0): 0, (0, 1, 0): Fraction(1, 2), (0, 0, 1): Fraction(1, 2)}, 3, 1)
    assert sigma.terms == {((0,), ((1,),)): Fraction(1, 2)}
    assert proof.method == "expansion"


def test_high_powers():
    """No table of all powers up to the degree."""
    sigma, proof = proved({(0, 10**9, 0): 3, (0, 0, 10**9): 3, (10**8, 0, 0): 1}, 3, 1)
    assert sigma.terms == {((0,), ((10**9,),)): 3, ((10**8,), ()): 1}
    assert proof.method == "modular"
    assert proof.failure_probability < 2.0**-40


def test_what_is_shared_between_results_cannot_be_written():
    sigma, _ = proved(dense(3, 1, 3), 3, 1)
    for array in (sigma.degrees, sigma.own, sigma.factors):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_few_products_of_many_terms_are_expanded():
    pytest.importorskip("flint")
    polynomial = dense(2, 1, 20)
    sigma, proof = proved(polynomial, 2, 1)
    assert (proof.method, proof.failure_probability) == ("expansion", 0)
    wrong = {**polynomial, (3, 4): polynomial[3, 4] + 1}
    with pytest.raises(CertificateError, match="differ"):
        SmallPolynomial(wrong, 2, 1, own=1).prove(sigma)
