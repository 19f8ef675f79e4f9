"""Multisets, orbit tensors and the sup norm of symmetric polynomials, against their dense twins."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb, factorial

import numpy as np
import pytest

from sumformer.algebra.multisets import Multisets
from sumformer.algebra.orbit_norm import Grid, OrbitBasis, best_grid, expected_norm, grids, mass, orbit_norm
from sumformer.algebra.orbit_tensors import transform


def symmetric(rng: np.random.Generator, own: int, types: int, m: int) -> np.ndarray:
    dense = rng.standard_normal((own, *(types,) * m))
    return sum(dense.transpose(0, *(1 + i for i in p)) for p in itertools.permutations(range(m)))


def orbits(dense: np.ndarray, m: int) -> np.ndarray:
    members = Multisets(dense.shape[1], m).members[m]
    return dense[:, *members.T]


@pytest.mark.parametrize(("types", "m"), [(1, 3), (4, 1), (3, 4), (5, 3)])
def test_multisets_are_ranked_as_they_stand(types: int, m: int):
    every = Multisets(types, m)
    for k in range(m + 1):
        rows = every.members[k]
        expected = sorted(itertools.combinations_with_replacement(range(types), k), key=lambda b: b[::-1])
        assert [tuple(row) for row in rows] == expected
        assert len(rows) == every.count(k) == comb(types + k - 1, k)
        ranks = {tuple(row): i for i, row in enumerate(every.members[k])}
        for row, count in zip(rows, every.arrangements(k), strict=True):
            repeats = np.prod([factorial(list(row).count(v)) for v in set(row)], initial=1)
            assert count == factorial(k) / repeats
        if k:
            for row, places in zip(every.members[k - 1], every.insertions[k - 1], strict=True):
                assert [ranks[tuple(sorted([*row, i]))] for i in range(types)] == list(places)


@pytest.mark.parametrize("m", [0, 1, 2, 3])
def test_a_transform_is_the_kronecker_product(m: int):
    rng = np.random.default_rng(m)
    dense = symmetric(rng, 5, 4, m)
    own, others = rng.standard_normal((3, 5)), rng.standard_normal((6, 4))
    expected = np.tensordot(own, dense, (1, 0))
    for axis in range(1, m + 1):
        expected = np.moveaxis(np.tensordot(others, expected, (1, axis)), 0, axis)
    values = orbits(dense, m) if m else dense[:, None]
    wanted = orbits(expected, m) if m else expected[:, None]
    np.testing.assert_allclose(transform(values, own, others, m), wanted, rtol=1e-12, atol=1e-12)


def basis(own: int, others: int, m: int) -> OrbitBasis:
    return OrbitBasis(np.arange(own)[:, None], np.arange(others)[:, None], m)


def sampled(dense: np.ndarray, m: int, points: int) -> float:
    """max |P| over a fine grid of angles, the corners in it."""
    angles = np.linspace(0, np.pi, points)
    values = dense
    for axis in range(m + 1):
        table = np.cos(angles[:, None] * np.arange(dense.shape[axis]))
        values = np.moveaxis(np.tensordot(table, values, (1, axis)), 0, axis)
    return float(np.abs(values).max())


@pytest.mark.parametrize("seed", range(6))
def test_the_norm_is_bounded_and_not_by_much(seed: int):
    rng = np.random.default_rng(seed)
    m, own, types = 2, 4, 3
    dense = symmetric(rng, own, types, m)
    coefficients, b = orbits(dense, m)[None], basis(own, types, m)
    found = sampled(dense, m, 61)
    assert expected_norm(coefficients, b) <= found * (1 + 1e-12)
    reach = own - 1 + m * (types - 1)  # the total degree: all terms are on the grid
    for tau in (Fraction(1, 2), Fraction(2, 3)):
        M = int(np.ceil(reach / float(tau)))
        bound = orbit_norm(coefficients, b, Grid(M, M, tau))
        assert found <= bound <= found / np.cos(float(tau) * np.pi / 2) * (1 + 1e-9)
    assert found <= orbit_norm(coefficients, b, Grid(4, 4, Fraction(1, 2)))  # high terms by their mass
    assert orbit_norm(coefficients, b, None) == pytest.approx(mass(coefficients, b).sum())
    expected, grid = best_grid(mass(coefficients, b), b, found, grids(b))
    assert grid is not None
    assert found <= orbit_norm(coefficients, b, grid) <= 2 * found
    assert expected < mass(coefficients, b).sum()


def test_a_grid_that_misses_the_peak_still_bounds_it():
    """T_4(u) is 0 on the zeros of T_4; a term at τ = π/2 would be invisible, so it may not count as held."""
    coefficients = np.zeros((1, 5, 1))
    coefficients[0, 4, 0] = 1.0
    b = basis(5, 1, 1)
    assert orbit_norm(coefficients, b, Grid(4, 4, Fraction(4, 5))) >= 1.0
    assert orbit_norm(coefficients, b, Grid(5, 4, Fraction(4, 5))) >= 1.0
