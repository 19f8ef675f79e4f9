"""Exhaustive, in exact arithmetic: every grid point of the case, out-of-range entries included."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sumformer.errors import InputError
from sumformer.theorems.yun_2020_deep.contextual_mapping import contextual_count, contextual_mapping, window
from sumformer.theorems.yun_2020_deep.grid import Grid, as_exact
from sumformer.theorems.yun_2020_deep.magnitude import magnitude
from sumformer.theorems.yun_2020_deep.shift_layers import ShiftLayers

CASES = [(2, 1, 2), (2, 1, 4), (3, 1, 3), (3, 1, 4), (4, 1, 4), (2, 2, 2), (2, 2, 3), (3, 2, 2)]


def every_input(grid, outside):
    """All n-tuples of tokens with entries in {−outside, 0, …, q−1}, and the number of each token."""
    tokens = np.array(list(product([-outside, *range(grid.q)], repeat=grid.d)))
    numbers = np.array(list(product(range(len(tokens)), repeat=grid.n)))
    return tokens[numbers], numbers


def properties(grid, layers, outside):
    """Which of the four properties hold on every input."""
    z, numbers = every_input(grid, outside)
    ids = layers(z) @ np.array(grid.u)
    low, high = window(grid)
    inside = (ids >= low) & (ids <= high)
    good = (z >= 0).all((1, 2)) & np.array([len(set(row)) == grid.n for row in numbers.tolist()])
    owner = {}
    shared = False
    for row, columns in zip(ids[good].tolist(), numbers[good].tolist(), strict=True):
        key = tuple(sorted(columns))
        shared |= any(owner.setdefault(v, key) != key for v in row)
    distinct = all(len(set(row)) == grid.n for row in ids[good].tolist())
    return distinct, not shared, bool(inside[good].all()), not inside[~good].any()


@pytest.mark.parametrize("case", CASES)
def test_the_four_properties(case):
    grid = Grid(*case)
    layers = contextual_mapping(grid)
    assert len(layers) == contextual_count(grid) == grid.q**grid.d + 1
    assert properties(grid, layers, grid.outside) == (True, True, True, True)


def test_the_value_of_a_slide_in_circulation_fails_property_4():
    """−δ^{nd} for what is out of range, rather than −δ^{−nd}."""
    grid = Grid(2, 1, 2)
    outside = Fraction(-1, grid.q ** (grid.n * grid.d - 1))
    ids = contextual_mapping(grid)(as_exact([[[outside], [1]], [[outside], [0]]]))[..., 0]
    low, high = window(grid)
    assert bool(((ids >= low) & (ids <= high)).any())


@pytest.mark.parametrize("case", [*CASES[:4], (2, 2, 2)])
def test_objects_and_int64_agree(case):
    grid = Grid(*case)
    z, _ = every_input(grid, grid.outside)
    layers = contextual_mapping(grid)
    assert (layers(as_exact(z)) == layers(z)).all()


@pytest.mark.parametrize("case", CASES)
def test_no_value_exceeds_the_magnitude(case):
    grid = Grid(*case)
    z, _ = every_input(grid, grid.outside)
    bound = magnitude(grid)
    states = list(contextual_mapping(grid).states(z))
    assert max(int(np.abs(s @ np.array(grid.u)).max()) for s in states) <= bound.overall
    inside = (z >= 0).all((1, 2))
    assert int(np.abs(states[-1][inside] @ np.array(grid.u)).max()) <= bound.inside
    assert int(np.abs(states[-2] @ np.array(grid.u)).max()) <= bound.before


def test_the_recursion_of_the_proof():
    """l̃_1 = l_1 + δ^{−d}(l_n − l_1), l̃_j = l_j + δ^{−d}(l̃_{j−1} − l_j) for sorted ids."""
    grid = Grid(4, 1, 7)
    ids = np.array([[1, 2, 4, 6]])
    *_, before, _ = contextual_mapping(grid).states(ids[..., None])
    wanted = [1 + 7 * (6 - 1)]
    for l in (2, 4, 6):  # noqa: E741
        wanted.append(l + 7 * (wanted[-1] - l))
    assert before[0, :, 0].tolist() == wanted


@pytest.mark.parametrize("case", [(4, 1, 2), (5, 1, 2), (5, 1, 3)])
def test_with_positions_all_ids_differ(case):
    n, d, q = case
    grid = Grid(n, d, q, tuple(range(n)))
    layers = contextual_mapping(grid)
    ids = layers(grid.tokens(grid.cells())) @ np.array(grid.u)
    assert len(layers) == n * q**d + 1
    assert ids.size == n * grid.Q**n
    assert len(np.unique(ids)) == ids.size
    assert int(np.abs(ids).max()) <= magnitude(grid).inside


def test_with_positions_the_last_shift_of_theorem_2_is_too_small():
    grid = Grid(4, 1, 2, (0, 1, 2, 3))
    layers = contextual_mapping(grid)
    s = layers.s.copy()
    s[-1, 0] = grid.Q ** (grid.n + 1)
    ids = ShiftLayers(layers.u, layers.beta, layers.b2, s)(grid.tokens(grid.cells()))[..., 0]
    assert len(np.unique(ids)) < ids.size


@pytest.mark.parametrize("sizes", [(1, 1, 2), (2, 0, 2), (2, 1, 1), (2, True, 2)])
def test_grids_that_are_none(sizes):
    with pytest.raises(InputError, match="expected n ≥ 2"):
        Grid(*sizes)
