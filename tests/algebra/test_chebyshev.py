from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sumformer.algebra import chebyshev
from sumformer.errors import InputError, ShapeError


def exact_T(k, i, n):
    return mpmath.cos(mpmath.mpf(k * (2 * i + 1)) * mpmath.pi / (2 * n))


@pytest.mark.parametrize("N", [0, 1, 2, 7, 40, 255])
def test_nodes_are_within_the_stated_error(N):
    with mpmath.workdps(40):
        for i, x in enumerate(chebyshev.nodes(N)):
            assert abs(mpmath.mpf(float(x)) - exact_T(1, i, N + 1)) <= chebyshev.COSINE_ERROR
    np.testing.assert_array_equal(chebyshev.nodes(N), -chebyshev.nodes(N)[::-1])


@pytest.mark.parametrize("shape", [(1,), (9,), (4, 6), (3, 1, 4)])
def test_coefficients_are_within_the_stated_error(shape):
    values = np.random.default_rng(1).uniform(-3, 3, shape)
    computed, error = chebyshev.coefficients(values), chebyshev.coefficient_error(shape, 3.0)
    assert error < 2e-13
    with mpmath.workdps(40):
        for alpha in np.ndindex(*shape):
            exact = mpmath.mpf(0)
            for index in np.ndindex(*shape):
                term = mpmath.mpf(float(values[index]))
                for k, i, n in zip(alpha, index, shape, strict=True):
                    term *= exact_T(k, i, n) * (1 if k == 0 else 2) / n
                exact += term
            assert abs(exact - mpmath.mpf(float(computed[alpha]))) <= error


def test_errors_of_the_values_are_carried():
    assert chebyshev.coefficient_error((8, 8), 0.0, 1e-6) >= 1e-6
    assert chebyshev.coefficient_error((8, 8), 0.0, 1e-6) <= 2.1e-6
    with pytest.raises(InputError):
        chebyshev.coefficient_error((8,), -1.0)


def test_the_interpolant_takes_the_values():
    values = np.random.default_rng(0).normal(size=(5, 1, 7))
    coeffs = chebyshev.coefficients(values)
    np.testing.assert_allclose(
        chebyshev.evaluate(coeffs, [chebyshev.nodes(n - 1) for n in values.shape]), values, atol=1e-13
    )
    partial = chebyshev.coefficients(chebyshev.coefficients(values, axes=[0]), axes=[1, -1])
    np.testing.assert_allclose(partial, coeffs, atol=1e-14)
    with pytest.raises(ShapeError):
        chebyshev.evaluate(coeffs, [[0.0]])


@pytest.mark.parametrize("shape", [(2,), (17,), (80,), (6, 9), (20, 20), (4, 5, 6), (5, 1, 3)])
def test_sup_norm_bound_is_above_the_maximum_and_near_it(shape):
    rng = np.random.default_rng(5)
    for decay in (0.0, 0.5):
        weights = np.exp(-decay * sum(np.ogrid[tuple(slice(n) for n in shape)]))
        coeffs = rng.normal(size=shape) * weights
        dense = [np.cos(np.linspace(0, np.pi, {1: 4001, 2: 401, 3: 81}[len(shape)])) for _ in shape]
        observed = np.abs(chebyshev.evaluate(coeffs, dense)).max()
        bound = chebyshev.sup_norm_bound(coeffs, oversample=8)
        assert observed * (1 - 1e-12) <= bound <= 1.2 * observed
        assert bound <= np.abs(coeffs).sum() * (1 + 1e-12)


@pytest.mark.parametrize("N", [1, 2, 5, 33])
def test_sup_norm_of_known_polynomials(N):
    """‖T_N‖ = 1; ‖T_N − T_{N−1}‖ = 2 is attained at −1; ‖(T_0 − T_2)/2‖ = ‖1 − x²‖ = 1, where ℓ1 is tight as well."""
    unit = np.zeros(N + 1)
    unit[N] = 1.0
    assert 1 <= chebyshev.sup_norm_bound(unit) <= 1 + 1e-12
    unit[N - 1] = -1.0
    assert 2 <= chebyshev.sup_norm_bound(unit) <= 2 + 1e-12
    ramp = 1.0 / np.arange(1, N + 2) * (-1) ** (np.arange(N + 1) // 2)
    x = np.cos(np.linspace(0, np.pi, 5001))
    observed = np.abs(np.polynomial.chebyshev.chebval(x, ramp)).max()
    assert observed <= chebyshev.sup_norm_bound(ramp, oversample=2) <= observed * math.sqrt(2) * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9), st.sampled_from([2.0, 3.5, 8.0]))
def test_sup_norm_bound_holds_at_exact_points(values, oversample):
    bound = Fraction(chebyshev.sup_norm_bound(values, oversample=oversample))
    for x in (Fraction(j, 16) for j in range(-16, 17)):
        assert abs(clenshaw([Fraction(v) for v in values], x)) <= bound


def clenshaw(coeffs, x):
    below, value = Fraction(0), Fraction(0)
    for c in reversed(coeffs[1:]):
        below, value = value, c + 2 * x * value - below
    return coeffs[0] + x * value - below


def test_sup_norm_bound_within_a_budget_and_at_the_edges():
    coeffs = np.random.default_rng(0).normal(size=(12, 12, 12))
    bounds = [chebyshev.sup_norm_bound(coeffs, budget=budget) for budget in (4_000_000, 20_000, 10)]
    assert bounds[0] <= bounds[1] <= bounds[2]
    assert bounds[2] == pytest.approx(np.abs(coeffs).sum())
    assert chebyshev.sup_norm_bound(np.zeros((3, 3))) == 0.0
    assert chebyshev.sup_norm_bound(-2.5) == pytest.approx(2.5)
    assert chebyshev.sup_norm_bound([[[-2.5]]]) == pytest.approx(2.5)
    assert chebyshev.sup_norm_bound([1e308, 1e308, -1e308]) >= 1e308
    assert chebyshev.sup_norm_bound([5e-324, 5e-324]) >= 1e-323
    for bad in ([np.nan], [1.0, np.inf]):
        with pytest.raises(InputError, match="finite"):
            chebyshev.sup_norm_bound(bad)
    with pytest.raises(InputError, match="oversample"):
        chebyshev.sup_norm_bound([1.0, 2.0], oversample=1.0)


@pytest.mark.parametrize("k", range(12))
def test_monomials_exactly(k):
    coeffs = chebyshev.monomial(k)
    assert len(coeffs) == k + 1
    assert sum(coeffs) == 1
    for x in (Fraction(-1), Fraction(1, 3), Fraction(-5, 7), Fraction(2)):
        assert clenshaw(list(coeffs), x) == x**k


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-6, 1e6), st.floats(1.0001, 100), st.integers(0, 60))
def test_ellipse_remainder_is_rounded_up(M, rho, N):
    exact = 4 * Fraction(M) / (Fraction(rho) ** N * (Fraction(rho) - 1))
    bound = Fraction(chebyshev.ellipse_remainder(M, rho, N))
    assert exact <= bound <= exact * (1 + Fraction(1, 10**10))


def test_ellipse_remainder_bounds_an_interpolation_error():
    rho = 3.0  # 1/(2 − x) has its pole at 2, on the ellipse of 2 + √3; on E_3 it is largest at (3 + 1/3)/2
    M = 1 / (2 - (rho + 1 / rho) / 2)
    x = np.linspace(-1, 1, 2001)
    for N in range(20):
        coeffs = chebyshev.coefficients(1 / (2 - chebyshev.nodes(N)))
        error = np.abs(chebyshev.evaluate(coeffs, [x]) - 1 / (2 - x)).max()
        assert error <= chebyshev.ellipse_remainder(M * 1.0000001, rho, N)


def test_extreme_ellipses_and_refusals():
    assert 0 < chebyshev.ellipse_remainder(1.0, 1e10, 1000) < 1e-300
    assert chebyshev.ellipse_remainder(math.inf, 2.0, 3) == math.inf
    for M, rho, N in ((1.0, 1.0, 3), (-1.0, 2.0, 3), (1.0, 2.0, -1), (math.nan, 2.0, 1), (1.0, math.inf, 1)):
        with pytest.raises(InputError):
            chebyshev.ellipse_remainder(M, rho, N)
    with pytest.raises(InputError):
        chebyshev.monomial(-1)
    with pytest.raises(InputError):
        chebyshev.lebesgue(-1)


@pytest.mark.parametrize("N", [0, 1, 5, 100])
def test_lebesgue_bounds_the_lebesgue_function(N):
    with mpmath.workdps(40):
        exact = 2 / mpmath.pi * mpmath.log(N + 1) + 1
        assert exact <= mpmath.mpf(chebyshev.lebesgue(N)) <= exact * (1 + mpmath.mpf(10) ** -13)
    x = np.cos(np.linspace(0, np.pi, 501))
    cardinal = np.polynomial.chebyshev.chebval(x, chebyshev.coefficients(np.eye(N + 1), axes=[0]))
    assert np.abs(cardinal).sum(axis=0).max() <= chebyshev.lebesgue(N) + 1e-12


@pytest.mark.slow
def test_sup_norm_fuzz():
    rng = np.random.default_rng(3)
    for shape in itertools.chain([(n,) for n in range(2, 60)], itertools.product([2, 5, 11], [1, 4, 9], [3, 8])):
        for _ in range(5):
            coeffs = rng.standard_cauchy(shape)
            grid = [rng.uniform(-1, 1, 60) for _ in shape]
            assert np.abs(chebyshev.evaluate(coeffs, grid)).max() <= chebyshev.sup_norm_bound(coeffs, 3) * (1 + 1e-12)
