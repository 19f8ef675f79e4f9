"""The modulus of a `CellSumformer` in the checker: no move of the tokens inside the reductions exceeds it."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.targets.moved_tokens import attained, random_source

from sumformer.certificates.checker.counted.modulus import Modulus
from sumformer.certificates.checker.counted.search import bound
from sumformer.targets import Target, parse, target
from sumformer.targets.domain import Box, Tokens

ATTENTION = "sum(exp({0})*y)/sum(exp({0}))"


def modulus(f: Target, radii: np.ndarray, goal: float = 0.0) -> float:
    with np.errstate(all="ignore"):
        return bound(Modulus(f.expression, f.box, radii, f.tokens), goal)


# source, d, n, box, how many times what is seen the bound may be: where several reductions meet, it adds their moves up
CASES: list[tuple[str, int, str, str, float]] = [
    ("mean(y)", 1, "any", "0:1", 1.01),
    ("x*mean(y) + sin(20*x)", 1, "any", "-1:2", 1.01),  # x outside does not move
    ("mean(x*y)", 2, "any", "-1:1", 1.1),
    ("mean((x - y)**2)", 1, "any", "0:1", 1.05),
    ("mean((y - mean(y))**2)", 1, "any", "0:1", 5),
    ("mean(y) - max(y)", 1, "any", "0:1", 1.5),
    ("mean(y) - mean(y)", 1, "any", "0:1", 1),
    ("max(y) - min(y)", 2, "any", "0:1,-1:1", 1.05),
    ("sin(3*x)*max(abs(x - y))", 1, "any", "-1:1", 1.2),
    ("max(x*y) - min(abs(x - y)*mean(y))", 1, "any", "-1:1", 1.5),
    ("norm(x - mean(y))", 2, "any", "0:1", 1.05),
    ("mean(norm(x - y))", 2, "any", "0:1", 1.05),
    ("max(norm(y - mean(y)))", 2, "..5", "0:1", 1.6),
    ("sum(y)", 1, "..10", "-1:1", 1.01),
    ("sum(tanh(x*y))*x/10", 1, "10", "-1:1", 1.1),
    ("sin(sum(y)/8)", 1, "..10", "0:1", 1.05),
    ("sum_others(abs(x - y))", 1, "2..10", "0:1", 1.01),
    ("mean_others(cos(3*y))*x - mean(cos(3*y))", 1, "any", "0:1", 2.5),
    ("max(x, mean_others(y)) + abs(x - mean(y))", 1, "any", "0:1", 2.5),
    ("mean(exp(-20*(x - y)**2))*x", 1, "any", "0:1", 1.2),
    ("(x - mean(y))/(1 + mean(y**2))", 1, "any", "0:1", 3),
    ("sqrt(1/4 + mean((y - mean(y))**2))", 1, "any", "0:1", 6),
    (ATTENTION.format("x*y"), 1, "any", "-1:1", 2),
    (ATTENTION.format("-4*norm2(x - y)"), 2, "any", "0:1", 4),
    ("sum_others(y*y/(1 + abs(y)))/sum_others(y/(1 + abs(y)))", 1, "..10", "1:2", 1.4),
    ("mean(-y*x*y*sigmoid(y - x))/mean(-y*sigmoid(y - x))", 1, "any", "0.5:2", 2),
    ("mean((y - sum(exp(y)*y)/sum(exp(y)))**2)", 1, "any", "0:1", 4),
    ("cat(mean(y[0]), max(x[1]*y[0]))", 2, "any", "0:1", 1.01),
    ("mean(exp(-norm2(x - y)/(1/2 + mean(norm(x - y)))))", 1, "any", "0:1", 4),  # in pieces of the inner mean
    ("max(y[1] - 4*abs(x[0] - y[0]))", 2, "any", "0:1", 1.05),
]


@pytest.mark.parametrize(("source", "d", "n", "box", "times"), CASES, ids=[case[0] for case in CASES])
def test_no_move_exceeds_the_modulus(source: str, d: int, n: str, box: str, times: float):
    f, radii = target(source, n=n, d=d, box=box), np.linspace(0.001, 0.0013, d)
    seen = attained(f, radii)
    found = modulus(f, radii, goal=times * seen)
    assert seen <= found + 1e-12
    assert found <= times * seen + 1e-12


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_no_move_exceeds_the_modulus_of_random_formulas(seed: int):
    rng = random.Random(seed)
    f = target(random_source(rng), n=rng.choice(["any", "..3", "3"]), d=1, box=rng.choice(["0:1", "-1:1", "0.25:1.5"]))
    radii = np.array([rng.choice([1e-3, 0.02, 0.2])])
    assert attained(f, radii, seed, batch=12, rounds=1) <= modulus(f, radii, goal=1e9) * (1 + 1e-9) + 1e-12


def test_different_reductions_do_not_cancel_and_one_does():
    radii = np.array([0.01])
    assert modulus(target("mean(y) - mean(1*y + 0*x)"), radii) >= 0.0199
    assert modulus(target("mean(y) - max(y)"), radii) >= 0.0199
    assert modulus(target("2*mean(y) - mean(y)"), radii) <= 0.0101


def test_the_own_token_may_leave_its_cell():
    """Where the factor outside is not 0 the body does not move, but within r of there it does."""
    f, radii = target("max(0, 1 - 10*abs(x))*mean(max(0, x - 0.1)*(1 + y))", box="-1:1"), np.array([0.3])
    seen = attained(f, radii, batch=400)
    assert 0.2 <= seen <= modulus(f, radii)


@pytest.mark.parametrize(
    "source",
    ["sqrt(mean(y))", "log(mean(y))", "1/mean(y)", "mean(1/(x - y))", "mean(y)**(-1)", "mean(sqrt(abs(x - y)))"],
)
def test_slopes_without_bound_have_none(source: str):
    assert modulus(target(source), np.array([0.01])) == np.inf


def test_an_overflow_has_no_bound():
    assert modulus(target("tanh(mean(exp(1000*y)))"), np.array([0.01])) == np.inf


def test_products_of_tiny_bounds_are_not_zero():
    f = target("(1e-200*mean(y))*1e-200*1e300*1e200")
    assert modulus(f, np.array([0.01])) >= 0.0099


@pytest.mark.parametrize("source", ["mean(sin(8*y))", "max(norm(x - y)*sin(2*x[0]))", ATTENTION.format("dot(x, y)")])
def test_a_goal_is_reached_or_given_up_soon(source: str):
    f, radii = target(source, d=2), np.array([0.01, 0.01])
    least = modulus(f, radii)
    goal = 1.05 * least
    assert modulus(f, radii, goal) <= goal
    assert modulus(f, radii, least / 2) > least / 2
    assert modulus(f, radii, np.inf) >= least * (1 - 1e-9)


def test_ranges_of_several_coordinates_are_cut_at_every_step():
    """8, 64, 512 pieces of what has three coordinates: 2 and 4 were none, and as many as 32 were counted as such."""
    m = Modulus(parse("mean(norm(y - mean(y)))", 3), Box.unit(3), np.full(3, 0.01), Tokens.any())
    steps = [1]
    while (more := m.more(steps[-1], 2**10)) is not None:
        steps.append(more)
    assert steps == [1, 8, 64, 512, 1000]


def test_sums_are_bounded_for_every_n():
    """n is halved as x is: at n = 1 the bound is that of one token."""
    radii = np.array([0.01])
    bounds = [modulus(target("sum(y)/(1 + sum(y**2))", n=n), radii) for n in ("1", "..1", "..4")]
    assert bounds[0] == bounds[1] < bounds[2]
    assert modulus(target("sum(y)/sum(1 + y)", n="..1000"), radii) <= 0.0201  # n cancels: means
    assert modulus(target("tanh(sum(y))", n=f"..{2**30}"), radii) <= 0.011 * 2**30
