from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sumformer.algebra.chebyshev_power_sums import chebyshev_power_sums
from sumformer.errors import InputError, ShapeError


def T(k, x):
    """T_k(x), exactly."""
    before, now = Fraction(1), x
    if k == 0:
        return before
    for _ in range(k - 1):
        before, now = now, 2 * x * now - before
    return now


def tensor_T(degree, x):
    product = Fraction(1)
    for k, v in zip(degree, x, strict=True):
        product *= T(int(k), v)
    return product


def direct(own, others, coefficients, x, Y):
    """The orbit sums as they are defined."""
    total = Fraction(0)
    for alpha, parts, c in zip(own, others, coefficients, strict=True):
        for arrangement in set(itertools.permutations(tuple(map(int, b)) for b in parts)):
            term = Fraction(float(c)) * tensor_T(alpha, x)
            for degree, y in zip(arrangement, Y, strict=True):
                term *= tensor_T(degree, y)
            total += term
    return total


def through_power_sums(form, x, Y):
    total = Fraction(0)
    for alpha, factors, c in zip(form.own, form.factors, form.coefficients, strict=True):
        term = Fraction(float(c)) * tensor_T(alpha, x)
        for beta in factors:
            if beta.any():
                term *= sum(tensor_T(beta, y) for y in Y)
        total += term
    return total


@given(st.integers(1, 4), st.integers(1, 2), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_the_identity_holds_within_the_counted_rounding(m, d, seed):
    draw = np.random.default_rng(seed)
    own, others = draw.integers(0, 4, (6, d)), draw.integers(0, 4, (6, m, d))
    others[draw.random((6, m)) < 0.4] = 0
    c = draw.normal(size=6)
    form = chebyshev_power_sums(own, others, c, m)
    x = [Fraction(int(v), 8) for v in draw.integers(-8, 9, d)]
    Y = [[Fraction(int(v), 8) for v in row] for row in draw.integers(-8, 9, (m, d))]
    gap = abs(through_power_sums(form, x, Y) - direct(own, others, c, x, Y))
    assert gap <= Fraction(form.coefficient_error)
    assert form.coefficient_error < 1e-11


def test_dyadic_coefficients_stay_exact():
    """Σ_{i≠j} y_i y_j = q_1² − (q_2 + q_0)/2 with q_0 = m."""
    form = chebyshev_power_sums([[0]], [[[1], [1], [0]]], [1.0], m=3)
    found = {tuple(sorted(f[f > 0].tolist())): c for f, c in zip(form.factors[..., 0], form.coefficients, strict=True)}
    assert found == {(1, 1): 0.5, (2,): -0.25, (): -0.75}
    assert form.betas.tolist() == [[1], [2]]


def test_the_error_is_a_bound_when_much_cancels():
    others = np.ones((1, 7, 1), dtype=int)
    form = chebyshev_power_sums([[0]], others, [0.1], m=7)
    Y = [[Fraction(k, 8)] for k in (-7, -5, -3, 1, 2, 6, 8)]
    gap = abs(through_power_sums(form, [Fraction(0)], Y) - direct([[0]], others, [0.1], [Fraction(0)], Y))
    assert 0 < gap <= Fraction(form.coefficient_error) < Fraction(1, 10**9)


def test_orbits_without_others_and_none_at_all():
    form = chebyshev_power_sums([[2, 1]], np.zeros((1, 3, 2)), [1.5], m=3)
    assert form.factors.shape == (1, 0, 2)
    assert form.coefficients.tolist() == [1.5]
    assert len(form.betas) == 0
    assert len(chebyshev_power_sums(np.zeros((0, 1)), np.zeros((0, 2, 1)), [], m=2).own) == 0
    assert len(chebyshev_power_sums([[1]], [[[1]]], [0.0], m=1).own) == 0


def test_mistakes_are_told():
    with pytest.raises(ShapeError, match="others of shape"):
        chebyshev_power_sums([[1]], [[1]], [1.0], m=1)
    with pytest.raises(ShapeError, match="coefficients"):
        chebyshev_power_sums([[1]], [[[1]]], [1.0, 2.0], m=1)
    with pytest.raises(InputError, match="at most m = 1 parts"):
        chebyshev_power_sums([[1]], [[[1], [2]]], [1.0], m=1)
    with pytest.raises(InputError, match="finite"):
        chebyshev_power_sums([[1]], [[[1]]], [np.inf], m=1)
    with pytest.raises(InputError, match="negative"):
        chebyshev_power_sums([[1]], [[[-1]]], [1.0], m=1)
    with pytest.raises(InputError, match="overflow"):
        chebyshev_power_sums([[0]], [[[1], [1]]], [1.7e308], m=2**20)
