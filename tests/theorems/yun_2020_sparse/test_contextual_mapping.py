"""Exhaustive, in exact arithmetic: all ids of all inputs differ, with exactly p(n−1)/δ^d + s layers."""

from __future__ import annotations

import numpy as np
import pytest

from sumformer.errors import RefusedError
from sumformer.nn import patterns as sparse
from sumformer.theorems.yun_2020_sparse.contextual_mapping import (
    sparse_contextual_mapping,
    sparse_count,
    sparse_grid,
    sparse_magnitude,
)

PATTERNS = [
    sparse.Window(1),
    sparse.Strided(2),
    sparse.Fixed(2),
    sparse.Star(1),
    sparse.BigBird(1, 1, 1),
    sparse.Longformer(1, 1),
    sparse.Random(3),
]


@pytest.mark.parametrize("case", [(4, 1, 2), (4, 1, 3), (3, 2, 2)])
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_all_ids_differ(pattern, case):
    report = pattern.assumption(case[0])
    if not report.holds:
        pytest.skip(str(report))
    grid = sparse_grid(pattern, *case)
    layers = sparse_contextual_mapping(grid, pattern)
    n, Q = grid.n, grid.Q
    assert len(layers) == sparse_count(grid, pattern) == pattern.p * (n - 1) * Q + report.reach
    assert layers.step == tuple(k % pattern.p for k in range(len(layers)))
    states = list(layers.states(grid.tokens(grid.cells())))
    ids = states[-1] @ np.array(grid.u)
    assert ids.size == n * Q**n
    assert len(np.unique(ids)) == ids.size
    bound = sparse_magnitude(grid, pattern)
    assert int(np.abs(ids).max()) <= bound.inside
    assert int(np.abs(states[-2] @ np.array(grid.u)).max()) <= bound.before


def test_with_one_spreading_step_too_few_a_token_does_not_hear_of_all():
    pattern = sparse.Window(1)
    grid = sparse_grid(pattern, 4, 1, 2)
    *_, before, _ = sparse_contextual_mapping(grid, pattern).states(grid.tokens(grid.cells()))
    assert len(np.unique(before)) < before.size


@pytest.mark.parametrize(
    ("pattern", "clauses"),
    [(sparse.Window(0), ["(2)", "(3)"]), (sparse.Star(0), ["(2)"])],
    ids=str,
)
def test_a_pattern_that_violates_assumption_1_is_refused_by_clause(pattern, clauses):
    with pytest.raises(RefusedError, match="does not meet Assumption 1") as refusal:
        sparse_grid(pattern, 5, 1, 2)
    assert [reason[:3] for reason in refusal.value.reasons] == clauses
