"""What f moves by when its tokens move inside reductions: never more than said, whatever n; often not much less."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.targets.moved_tokens import attained, random_source

from sumformer.algebra.interval import Interval
from sumformer.algebra.slope import Slope
from sumformer.errors import InputError, RefusedError
from sumformer.targets import target
from sumformer.targets.mixture_modulus import mixture_modulus
from sumformer.targets.mixture_slopes import in_pieces, splits_of

ATTENTION = "sum(exp({0})*y)/sum(exp({0}))"
# source, d, n, box, how many times what is seen the bound may be: where several reductions meet, it adds their moves up
CASES = [
    ("mean(y)", 1, "any", "0:1", 1.01),
    ("x*mean(y) + sin(20*x)", 1, "any", "-1:2", 1.01),  # x outside does not move
    ("mean(x*y)", 2, "any", "-1:1", 1.1),
    ("mean((x - y)**2)", 1, "any", "0:1", 1.05),
    ("max(y) - min(y)", 2, "any", "0:1,-1:1", 1.05),
    ("sin(3*x)*max(abs(x - y))", 1, "any", "-1:1", 1.2),
    ("mean(norm(x - y))", 2, "any", "0:1", 1.05),
    ("norm(x - mean(y))", 2, "any", "0:1", 1.05),
    ("sum_others(abs(x - y))", 1, "2..10", "0:1", 1.01),
    ("sum(y)", 1, "..10", "-1:1", 1.01),
    ("mean(exp(-20*(x - y)**2))*x", 1, "any", "0:1", 1.2),
    (ATTENTION.format("x*y"), 1, "any", "-1:1", 2),
    (ATTENTION.format("-4*norm2(x - y)"), 2, "any", "0:1", 4),
    (ATTENTION.format("3*y"), 3, "any", "0:1", 4),  # weights of width 3
    ("sum((y - 2)*y*x)/sum(y - 2)", 1, "..50", "0:1", 2.5),  # weights below 0, and a range of n in which n cancels
    ("mean((y - sum(exp(y)*y)/sum(exp(y)))**2)", 1, "any", "0:1", 6),
    ("mean(exp(-norm2(x - y)/(1/2 + mean(norm(x - y)))))", 1, "any", "0:1", 4),  # in pieces of the inner mean
    ("max(y[1] - 4*abs(x[0] - y[0]))", 2, "any", "0:1", 1.05),
]


@pytest.mark.parametrize(("source", "d", "n", "box", "times"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("radius", [0.001, 0.1])
def test_no_move_exceeds_the_modulus(source, d, n, box, times, radius):
    f, radii = target(source, n=n, d=d, box=box), radius * np.linspace(1, 1.3, d)
    seen, found = attained(f, radii), mixture_modulus(f, radii)
    assert seen <= found + 1e-12
    if radius < 0.01:
        assert found <= times * seen + 1e-12


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_no_move_exceeds_the_modulus_of_random_formulas(seed):
    rng = random.Random(seed)
    f = target(random_source(rng), n=rng.choice(["any", "..3", "3"]), d=1, box=rng.choice(["0:1", "-1:1", "0.25:1.5"]))
    radii = np.array([rng.choice([1e-3, 0.02, 0.2])])
    try:
        bound = mixture_modulus(f, radii, 2**12)
    except RefusedError:
        return
    assert attained(f, radii, seed, batch=12, rounds=1) <= bound * (1 + 1e-9) + 1e-12


def test_one_reduction_cancels_and_two_do_not():
    assert mixture_modulus(target("mean(y) - mean(1*y + 0*x)"), [0.01]) >= 0.0199
    assert mixture_modulus(target("mean(y) - max(y)"), [0.01]) >= 0.0199


def test_the_own_token_may_leave_its_cell():
    """Where the factor outside is not 0 the body does not move, but within r of there it does."""
    f = target("max(0, 1 - 10*abs(x))*mean(max(0, x - 0.1)*(1 + y))", box="-1:1")
    seen = attained(f, np.array([0.3]), batch=400)
    assert 0.2 <= seen <= mixture_modulus(f, [0.3])


@pytest.mark.parametrize("source", ["sqrt(mean(y))", "log(mean(y))", "mean(1/(x - y))", "mean(sqrt(abs(x - y)))"])
def test_slopes_without_bound_are_refused_with_the_reason(source):
    with pytest.raises(RefusedError, match="no modulus of continuity") as refusal:
        mixture_modulus(target(source), [0.01])
    assert refusal.value.reasons


@pytest.mark.parametrize("weights", [[-0.1], [0.1, 0.1], [np.inf], [np.nan]])
def test_wrong_weights_are_refused(weights):
    with pytest.raises(InputError, match="finite weights"):
        mixture_modulus(target("mean(y)"), weights)


def test_a_coordinate_of_f_is_measured_with_what_it_reads():
    """The larger of both, not their sum; and a coordinate that is not read does not matter."""
    assert mixture_modulus(target("cat(max(y[0]), 3*max(y[1]))", d=3), [0.01, 0.01, 7.0]) == pytest.approx(0.03)
    assert mixture_modulus(target("x[2]*mean(abs(x[0] - y[1]))", d=3), [0.01, 0.02, 7.0]) == pytest.approx(0.03)
    assert mixture_modulus(target("x", d=3), [0.01] * 3) == 0


def test_pieces_cover_the_range():
    low, high = np.array([[-1.0, 0.1], [2.0, 3.0]]), np.array([[0.7, 0.1], [np.inf, 5.0]])
    slope = Slope(Interval(low, high), Interval.point(np.zeros((2, 2, 1))), np.zeros((2, 2)))
    node = target("max(y)", d=2).expression
    pieces = [held[node].value for held in in_pieces({node: slope}, 16)]
    assert len(pieces) == 16
    for t in np.linspace(0, 1, 41):
        for u in np.linspace(0, 1, 41):
            point = np.array([[-1 + 1.7 * t, 0.1], [2.0 + 1e9 * t, 3 + 2 * u]])
            point[0, 0], point[1, 1] = min(point[0, 0], 0.7), min(point[1, 1], 5.0)
            assert any(bool((p.lo[0] <= point[0]).all() and (point[0] <= p.hi[0]).all()) for p in pieces)
            assert any(bool((p.lo[1] <= point[1]).all() and (point[1] <= p.hi[1]).all()) for p in pieces)
    assert any(p.hi[0, 0] - p.lo[0, 0] < 0.5 for p in pieces)


@pytest.mark.parametrize("d", range(1, 12))
def test_finer_grids_are_finer(d):
    splits = [splits_of(2**k, d) for k in range(12, 19)]
    assert splits == sorted(splits)
    assert splits[-1] ** (2 * d) <= 2**18
    assert (splits[-1] + 1) ** (2 * d) > 2**18


def test_many_coordinates_are_not_covered_by_halves_of_each():
    """2^(2·28) pairs of cells could not be held."""
    assert 0.01 <= mixture_modulus(target("max(y) - min(y)", d=28), [0.005] * 28) <= 0.011
