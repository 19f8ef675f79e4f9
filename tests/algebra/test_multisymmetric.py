from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multisymmetric_examples import dense, semi_invariants, value

from sumformer.algebra.expanded_polynomial import ExpandedPolynomial
from sumformer.algebra.multisymmetric import in_power_sums
from sumformer.algebra.power_sum_polynomial import PowerSumPolynomial
from sumformer.algebra.power_sum_reduction import within
from sumformer.algebra.small_polynomial import SmallPolynomial
from sumformer.errors import InputError, NotSymmetricError, ShapeError

READERS = {
    "arrays": lambda f, tokens, d: in_power_sums(ExpandedPolynomial.of(f, tokens, d)),
    "naive": lambda f, tokens, d: SmallPolynomial(f, tokens, d, own=1).in_power_sums(),
}


@given(semi_invariants(), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_the_power_sums_give_the_polynomial_back(example, seed):
    polynomial, tokens, d = example
    sigma = in_power_sums(ExpandedPolynomial.of(polynomial, tokens, d))
    draw = np.random.default_rng(seed)
    X = [[Fraction(int(v), 7) for v in row] for row in draw.integers(-20, 20, (tokens, d))]
    assert sigma.evaluate(X[0], X[1:]) == value(polynomial, X)


@given(semi_invariants(own=0))
@settings(max_examples=30, deadline=None)
def test_without_an_own_token(example):
    polynomial, tokens, d = example
    sigma = in_power_sums(ExpandedPolynomial.of(polynomial, tokens, d), own=0)
    X = [[Fraction(3 * i - 2 * c, 5) for c in range(d)] for i in range(tokens)]
    assert sigma.evaluate([Fraction(0)] * d, X) == value(polynomial, X)


@given(semi_invariants())
@settings(max_examples=60, deadline=None)
def test_the_naive_twin_agrees(example):
    polynomial, tokens, d = example
    fast = in_power_sums(ExpandedPolynomial.of(polynomial, tokens, d))
    assert SmallPolynomial(polynomial, tokens, d, own=1).in_power_sums().terms == fast.terms


@given(semi_invariants(max_tokens=3, max_d=2), st.integers(0, 1))
@settings(max_examples=40, deadline=None)
def test_fewer_power_sums_are_enough(example, extra):
    polynomial, tokens, d = example
    sigma = in_power_sums(ExpandedPolynomial.of(polynomial, tokens, d))
    reduced = within(sigma, tokens - 1 + extra)
    assert all(sum(beta) <= tokens - 1 + extra for beta in reduced.betas)
    X = [[Fraction(2 * i * i - 3 * c, 3) for c in range(d)] for i in range(tokens)]
    assert reduced.evaluate(X[0], X[1:]) == value(polynomial, X)


def test_newton_is_found():
    """e_3 = (p_1³ − 3 p_1 p_2 + 2 p_3) / 6."""
    sigma = in_power_sums(ExpandedPolynomial.of({(1, 1, 1): 1}, 3, 1), own=0)
    expected = {((1,), (1,), (1,)): Fraction(1, 6), ((2,), (1,)): Fraction(-1, 2), ((3,),): Fraction(1, 3)}
    assert sigma.terms == {((0,), factors): c for factors, c in expected.items()}


def test_coefficients_too_long_for_a_machine_word():
    huge = Fraction(3**90, 7**50)
    polynomial = {e: c * huge for e, c in dense(4, 1, 4).items()}
    sigma = in_power_sums(ExpandedPolynomial.of(polynomial, 4, 1))
    X = [[Fraction(i, 3)] for i in (2, -1, 5, 7)]
    assert sigma.evaluate(X[0], X[1:]) == value(polynomial, X)


def test_many_coordinates():
    d = 40
    unit = tuple(int(c == 17) for c in range(d))
    zero = (0,) * d
    sigma = in_power_sums(ExpandedPolynomial.of({zero + unit + zero: 2, zero + zero + unit: 2}, 3, d))
    assert sigma.terms == {(zero, (unit,)): 2}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("polynomial", [{}, {(0, 0, 0): 5}, {(3, 0, 0): -1}, {(1, 0, 0): 0}])
def test_constants_zero_and_the_own_token_alone(reader, polynomial):
    sigma = reader(polynomial, 3, 1)
    X = [[Fraction(5)], [Fraction(2)], [Fraction(3)]]
    assert sigma.evaluate(X[0], X[1:]) == value(polynomial, X)
    assert sigma.betas == ()
    assert sigma.products == 0


@pytest.mark.parametrize("change", ["value", "absent"])
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_what_is_not_symmetric_is_refused_with_a_witness(change, reader):
    polynomial = dense(3, 2, 3)
    member = (1, 0, 0, 1, 0, 0)
    if change == "value":
        polynomial[member] += 1
    else:
        del polynomial[member]
    with pytest.raises(NotSymmetricError) as refused:
        reader(polynomial, 3, 2)
    a, b = refused.value.exponents
    assert member in (a, b)
    assert (a[:2], a[2:4], a[4:]) == (b[:2], b[4:], b[2:4])
    assert [polynomial.get(e, 0) for e in (a, b)] == list(refused.value.coefficients)
    assert polynomial.get(a, 0) != polynomial.get(b, 0)
    assert str(member) in str(refused.value)


def test_what_cannot_be_a_polynomial_is_refused():
    with pytest.raises(ShapeError, match="2 tokens × 2 coordinates"):
        ExpandedPolynomial.of({(1, 2, 3): 1}, 2, 2)
    with pytest.raises(InputError, match="Fraction"):
        ExpandedPolynomial.of({(1, 2): 0.5}, 2, 1)
    with pytest.raises(InputError, match="negative"):
        ExpandedPolynomial.of({(1, -2): 1}, 2, 1)
    with pytest.raises(InputError, match="do not generate"):
        within(PowerSumPolynomial.of({((0,), ((3,),)): Fraction(1)}, 3, 1), 2)


def test_it_prints():
    sigma = PowerSumPolynomial.of({((1, 0), ((0, 2), (1, 1))): Fraction(-1, 2)}, 3, 2)
    assert str(sigma) == "-1/2*x[0]*p[1,1]*p[0,2]"
