"""Every family against its definition, written out token by token."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from sumformer.errors import InputError
from sumformer.nn.patterns import BigBird, Fixed, Longformer, Random, Star, Strided, Window, steps_of_heads
from sumformer.nn.patterns.pattern import Pattern
from sumformer.nn.patterns.plan import _build, plan
from sumformer.nn.pretrained import PretrainedModule

LENGTHS = [1, 2, 5, 31, 33, 70]


def window(k, n, w):
    return {j for j in range(n) if abs(j - k) <= w}


def block_ends(n, size):
    return {min(start + size, n) - 1 for start in range(0, n, size)}


DEFINITIONS = [
    (Window(0), [lambda k, n: {k}]),
    (Window(3), [lambda k, n: window(k, n, 3)]),
    (Window(40), [lambda k, n: window(k, n, 40)]),
    (Strided(4), [lambda k, n: window(k, n, 4), lambda k, n: {j for j in range(n) if (j - k) % 4 == 0}]),
    (Strided(1), [lambda k, n: window(k, n, 1), lambda k, n: set(range(n))]),
    (Strided(37), [lambda k, n: window(k, n, 37), lambda k, n: {j for j in range(n) if (j - k) % 37 == 0}]),
    (Fixed(4), [lambda k, n: {j for j in range(n) if j // 4 == k // 4}, lambda k, n: {k} | block_ends(n, 4)]),
    (Fixed(40), [lambda k, n: {j for j in range(n) if j // 40 == k // 40}, lambda k, n: {k} | block_ends(n, 40)]),
    (Star(2), [lambda k, n: window(k, n, 2) | {0} if k else set(range(n))]),
    (Longformer(1, 3), [lambda k, n: window(k, n, 1) | set(range(min(3, n))) if k >= 3 else set(range(n))]),
    (Longformer(2, 50), [lambda k, n: window(k, n, 2) | set(range(min(50, n))) if k >= 50 else set(range(n))]),
]
DRAWN = [Random(1), Random(5, seed=3), Random(80), BigBird(2, 1, 3), BigBird(0, 40, 2, seed=7)]
over_definitions = pytest.mark.parametrize(("pattern", "steps"), DEFINITIONS, ids=lambda value: str(value)[:24])
over_all = pytest.mark.parametrize("pattern", [p for p, _ in DEFINITIONS] + DRAWN, ids=str)


def as_sets(matrix):
    return [set(row.nonzero().flatten().tolist()) for row in matrix]


@over_definitions
@pytest.mark.parametrize("n", LENGTHS)
def test_neighbours_are_those_of_the_definition(pattern, steps, n):
    assert pattern.p == len(steps)
    for number, step in enumerate(steps):
        wanted = [step(k, n) for k in range(n)]
        assert as_sets(pattern.matrix(n, number)) == wanted
        assert pattern.neighbours(n - 1, n, number) == sorted(wanted[-1])
    assert as_sets(pattern.matrix(n)) == [set().union(*(step(k, n) for step in steps)) for k in range(n)]


@over_all
@pytest.mark.parametrize("n", LENGTHS)
def test_the_plan_lists_every_connection_once(pattern, n):
    """Edges and counts come from the layout that the computation uses, the matrix from the definition."""
    for step in (None, *range(pattern.p)):
        matrix = pattern.matrix(n, step)
        k, j = pattern.edges(n, step)
        counts = torch.zeros(n, n, dtype=torch.long).index_put_((k, j), torch.ones_like(k), accumulate=True)
        assert torch.equal(counts, matrix.long())
        assert (k * n + j).diff().gt(0).all()
        assert pattern.connections(n, step) == len(k)
        assert pattern.density(n, step) == len(k) / n**2
        assert matrix.diagonal().all()


@over_all
def test_in_causal_order_a_row_is_that_of_its_prefix(pattern):
    for step in (None, *range(pattern.p)):
        matrix = pattern.matrix(20, step, is_causal=True)
        for k in range(20):
            assert pattern.neighbours(k, k + 1, step) == matrix[k].nonzero().flatten().tolist()
            assert isinstance(pattern, Random | BigBird) or torch.equal(matrix, pattern.matrix(20, step).tril())


def test_connections_of_long_sequences_in_closed_form():
    n, size = 65_536, 256
    assert Window(64).connections(n) == n * 129 - 64 * 65
    assert Star(1).connections(n) == (n * 3 - 2) + (n - 2) + (n - 2)
    assert Fixed(size).connections(n, 0) == n * size
    assert Fixed(size).connections(n, 1) == n * (n // size) + n - n // size
    assert Strided(size).connections(n, 1) == n * (n // size)


def test_plans_are_kept():
    step, device = Star(3).step(), torch.device("cpu")
    assert plan(step, 50, device) is plan(Star(3).step(), 50, device)
    assert plan(step, 50, device) is not plan(step, 51, device)


@over_all
def test_a_pattern_is_a_value(pattern):
    again = type(pattern)(**dict(pattern._values))
    assert again == pattern
    assert hash(again) == hash(pattern)
    assert {pattern: 1}[again] == 1
    assert pattern != Window(1000)
    assert json.loads(json.dumps(pattern.config())) == {"type": type(pattern).__name__, **dict(pattern._values)}
    with pytest.raises(AttributeError, match="does not change"):
        setattr(pattern, pattern._values[0][0], 5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        pattern.step().rows = 3


def test_a_pattern_is_saved_and_read(tmp_path):
    for pattern in (BigBird(2, 1, 3, seed=5), Fixed(3)):
        pattern.save_pretrained(tmp_path)
        assert PretrainedModule.from_pretrained(tmp_path) == pattern
        assert isinstance(Pattern.from_pretrained(tmp_path), Pattern)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Window(-1), "≥ 0, got w = -1"),
        (lambda: Strided(0), "≥ 1, got l = 0"),
        (lambda: Fixed(2.0), "got l = 2.0"),
        (lambda: Longformer(1, 0), "g = 0"),
        (lambda: BigBird(1, 0, 0), "g = 0, r = 0"),
        (lambda: Random(True), "r = True"),
        (lambda: Random.of_density(0, 5), "density"),
        (lambda: Window(1).connections(0), "n = 0"),
    ],
)
def test_wrong_sizes_are_named(build, words):
    with pytest.raises(InputError, match=words):
        build()


@pytest.mark.parametrize("k", [10, 99, -1, 2.0, True])
def test_a_token_that_is_not_there_has_no_neighbours(k):
    with pytest.raises(InputError, match=r"Window.neighbours: expected k in 0 … 9, got "):
        Window(1).neighbours(k, 10)


def test_compositions():
    pattern = Strided(3)
    window_step, stride_step = pattern.steps
    assert steps_of_heads(pattern, "union", 2) == (window_step | stride_step,) * 2
    assert steps_of_heads(pattern, "sequential", 2, layer=3) == (stride_step,) * 2
    assert steps_of_heads(pattern, "multihead", 4) == (window_step, window_step, stride_step, stride_step)
    assert steps_of_heads(pattern, "multihead", 3) == (window_step, window_step, stride_step)
    with pytest.raises(InputError, match="a head for each of the 2 steps"):
        steps_of_heads(pattern, "multihead", 1)
    with pytest.raises(InputError, match="expected composition"):
        steps_of_heads(pattern, "all", 1)


@pytest.mark.parametrize("is_causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("step", [Fixed(4).step(), Fixed(4).step(1), Longformer(1, 3).step()], ids=str)
def test_an_index_made_a_few_blocks_at_a_time_is_the_same(step, is_causal, monkeypatch):
    whole = _build(step, 200, torch.device("cpu"), is_causal, 200)
    monkeypatch.setattr("sumformer.nn.patterns.plan._AT_A_TIME", 1)
    pieces = _build(step, 200, torch.device("cpu"), is_causal, 200)
    assert all(torch.equal(a, b) for a, b in zip(whole.blocked, pieces.blocked, strict=True))
