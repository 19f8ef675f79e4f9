from __future__ import annotations

import numpy as np
import pytest

from sumformer.errors import InputError
from sumformer.nn.patterns import BigBird, Fixed, Longformer, Random, Star, Strided, Window
from sumformer.nn.patterns.assumption import examine
from sumformer.nn.patterns.hamiltonian_path import find_path, is_path
from sumformer.nn.patterns.reach import reach


def reach_by_sets(steps):
    """The definition with Python's sets."""
    n = len(steps[0])
    sets = [set(np.flatnonzero(row).tolist()) for row in steps[0]]
    for s in range(1, 5 * n):
        if all(len(one) == n for one in sets):
            return s
        sets = [set().union(*(sets[j] for j in np.flatnonzero(row))) for row in steps[s % len(steps)]]
    return None


@pytest.mark.parametrize(
    ("pattern", "n", "s"),
    [
        (Window(1), 9, 8),
        (Window(3), 20, 7),
        (Window(3), 1, 1),
        (Strided(4), 16, 2),
        (Fixed(4), 16, 2),
        (Fixed(4), 18, 2),
        (Star(), 30, 2),
        (Longformer(2, 3), 40, 2),
        (BigBird(1, 1, 2), 40, 2),
        (Star(), 1000, 2),
        (Window(2), 301, 150),
    ],
    ids=str,
)
def test_families_that_meet_it(pattern, n, s):
    report = pattern.assumption(n)
    assert report.holds
    assert report.self_loops
    assert report.reach == s
    assert report.reasons == ()
    assert is_path(pattern.matrix(n).numpy(), report.path)
    assert "holds" in str(report)
    if n <= 40:
        assert s == reach_by_sets([pattern.matrix(n, step).numpy() for step in range(pattern.p)])


def test_reasons():
    report = Window(0).assumption(3)
    assert not report.holds
    assert report.self_loops
    assert report.path is report.reach is None
    assert report.reasons == (
        "(2) no Hamiltonian path: no other token attends to token 0, nor to token 1",
        "(3) token 0 never hears of token 1, in any number of steps",
    )
    assert str(report).startswith("Assumption 1 is violated:")
    no_loop = np.ones((3, 3), dtype=bool)
    no_loop[1, 1] = False
    assert examine([no_loop]).reasons == ("(1) token 1 is not in its own A_k^0",)
    with pytest.raises(InputError, match="n ≤ 4096"):
        Window(1).assumption(5000)


@pytest.mark.parametrize(("n", "word"), [(18, "is violated"), (24, "was not shown")])
def test_a_search_given_up_is_no_violation(n, word):
    """One token joined to all others, which are joined to nobody else: no path, tried in full for n ≤ 20 only."""
    matrix = np.eye(n, dtype=bool)
    matrix[0] = matrix[:, 0] = True
    report = examine([matrix])
    assert (report.path, report.reach, report.holds) == (None, 2, False)
    assert str(report).startswith(f"Assumption 1 {word}:")
    assert report.violated == (n == 18)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [8, 20, 60])
def test_random_patterns_are_judged_as_by_definition(n, seed):
    for r in (1, 2, 3):
        matrix = Random(r, seed).matrix(n).numpy()
        report = Random(r, seed).assumption(n)
        assert report.reach == reach_by_sets([matrix])
        assert report.path is None or is_path(matrix, report.path)
        assert report.holds == (report.path is not None and report.reach is not None)


@pytest.mark.parametrize("seed", range(3))
def test_a_dense_enough_random_pattern_has_a_path_and_it_is_found(seed):
    report = Random(12, seed).assumption(200)
    assert report.holds
    assert is_path(Random(12, seed).matrix(200).numpy(), report.path)


def shuffled(n, extra, seed):
    """Arrows along a hidden permutation, and a few more."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(n)
    matrix = np.eye(n, dtype=bool) | (generator.random((n, n)) < extra)
    matrix[order[1:], order[:-1]] = True
    return matrix


@pytest.mark.parametrize("n", [2, 9, 16, 20])
@pytest.mark.parametrize("extra", [0.0, 0.1])
def test_a_hidden_path_is_found_exactly_for_small_n(n, extra):
    path, _ = find_path(shuffled(n, extra, n))
    assert is_path(shuffled(n, extra, n), path)


@pytest.mark.parametrize("extra", [0.0, 0.05])
def test_a_hidden_path_is_found_by_search(extra):
    path, _ = find_path(shuffled(150, extra, 1))
    assert is_path(shuffled(150, extra, 1), path)


def brute_force(matrix):
    def extend(path):
        if len(path) == len(matrix):
            return True
        return any(matrix[k, path[-1]] and extend([*path, k]) for k in range(len(matrix)) if k not in path)

    return any(extend([start]) for start in range(len(matrix)))


def test_exact_on_all_small_graphs_drawn():
    generator = np.random.default_rng(0)
    answers = set()
    for _ in range(60):
        matrix = np.eye(6, dtype=bool) | (generator.random((6, 6)) < 0.25)
        path, why = find_path(matrix)
        assert (path is not None) == brute_force(matrix)
        assert (path is None) == bool(why)
        assert path is None or is_path(matrix, path)
        answers.add(path is None)
    assert answers == {True, False}


def test_two_halves_are_told_apart():
    halves = np.kron(np.eye(2, dtype=bool), np.ones((15, 15), dtype=bool))
    assert find_path(halves) == (None, "no Hamiltonian path: no chain of connections joins token 0 and token 15")
    assert reach([halves])[1] == "token 0 never hears of token 15, in any number of steps"


def test_what_is_not_a_path():
    chain = np.tri(4, dtype=bool)
    assert is_path(chain, [0, 1, 2, 3])
    assert not is_path(chain, [3, 2, 1, 0])
    assert not is_path(chain, [0, 1, 2])
    assert not is_path(chain, [0, 1, 1, 2])
