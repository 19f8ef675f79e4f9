"""Certified Lipschitz constants: never below what any gradient or any pair of inputs shows, and tight where known."""

from math import sqrt
from random import Random

import numpy as np
import pytest
import torch

from sumformer.algebra.interval import Interval
from sumformer.errors import InputError, RefusedError, SumformerError
from sumformer.targets import Target, Tokens, target
from sumformer.targets.domain import Box
from sumformer.targets.lipschitz import lipschitz_bound
from sumformer.targets.token_slopes import TokenSlopes

from .random_trees import random_tree

GAUSS = "sum(exp(-norm2(x-y))*y)/sum(exp(-norm2(x-y)))"


def value_at_own(f, X):
    return f(X)[:, 0]


def secants(f, moving, trials=400, seed=0):
    """|f(X) − f(X')| over the largest move, at random pairs, close ones and ties among them."""
    generator = torch.Generator().manual_seed(seed)
    n = f.tokens.maximum

    def draw():
        X = torch.rand(trials, n, f.d, generator=generator, dtype=torch.float64)
        X[::3] = X[::3, :1]  # every token at one place
        X[1::3] = X[1::3].round()
        return X

    X = draw()
    step = 10 ** -(4 * torch.rand(trials, 1, 1, generator=generator, dtype=torch.float64))
    Y = (X + step * (2 * torch.rand(X.shape, generator=generator, dtype=torch.float64) - 1).sign()).clamp(0, 1)
    Y = torch.where(moving[:, None], Y, X)
    move = (Y - X).abs().flatten(1).amax(1).clamp_min(1e-12)
    return (value_at_own(f, X) - value_at_own(f, Y)).abs().amax(1) / move


@pytest.mark.parametrize(
    ("source", "n", "d", "others", "token"),
    [
        ("norm(x-mean(y))", 8, 2, 7 / 8 * sqrt(2), sqrt(2) / 8),
        ("norm(x-mean(y))", 100, 2, 0.99 * sqrt(2), sqrt(2) / 100),
        ("max(y)", 8, 2, 1.0, 1.0),
        ("max(norm(x-y))", 5, 2, sqrt(2), sqrt(2)),
        ("min(abs(x-y))", 4, 1, 1.0, 1.0),
        ("max(y)-min(y)", 8, 1, 2.0, 1.0),
        ("sum_others(norm(x-y))", 5, 2, 4 * sqrt(2), sqrt(2)),
        ("max(x, mean_others(y))", 3, 1, 1.0, 0.5),
        ("abs(sum(y)-1)", 3, 1, 2.0, 1.0),
    ],
)
def test_constants_known_by_hand(source, n, d, others, token):
    f = target(source, n=n, d=d)
    for wrt, known in (("others", others), ("token", token)):
        found = lipschitz_bound(f, wrt=wrt)
        assert known * (1 - 1e-9) <= found.value <= known * (1 + 1e-9)
        assert found.kind == "enclosed"


def test_the_own_token_counts_only_when_asked_for():
    f = target("3*x + mean(y)", n=4)
    assert lipschitz_bound(f).value == pytest.approx(0.75)
    assert lipschitz_bound(f, wrt="all").value == pytest.approx(4.0)
    assert lipschitz_bound(target("3*x", n=4)).value == 0.0
    assert lipschitz_bound(target("mean(y)", n=1)).value == 0.0


def test_weights_say_how_far_each_coordinate_moves():
    f = target("sum_others(y[0] + 10*y[1])", n=3, d=2)
    assert lipschitz_bound(f, weights=(1.0, 0.0)).value == pytest.approx(2.0)
    assert lipschitz_bound(f, weights=(0.5, 0.1)).value == pytest.approx(3.0)
    with pytest.raises(InputError, match="2 finite weights"):
        lipschitz_bound(f, weights=(1.0,))


def test_a_range_of_n_takes_the_worst_of_them():
    f = target("norm(x-mean(y))", n="..20", d=2)
    assert lipschitz_bound(f).value == pytest.approx(19 / 20 * sqrt(2))
    with pytest.raises(RefusedError, match="one by one"):
        lipschitz_bound(target("norm(x-mean(y))", n="any", d=2))


WEIGHTED = [
    (GAUSS, 4, 1),
    (GAUSS, 3, 2),
    ("sum_others(exp(-4*norm2(x-y))*y)/sum_others(exp(-4*norm2(x-y)))", 4, 1),
    ("mean(y*exp(dot(x,y))*abs(x-y))/mean(exp(dot(x,y)))", 3, 2),
    ("x + 3*sum((1+norm2(y))**2*sin(y))/sum((1+norm2(y))**2)", 4, 1),
    ("sum(exp(-norm2(y-mean(y)))*max(y)*y)/sum(exp(-norm2(y-mean(y))))", 3, 1),
    ("sum(exp(x*y)/(1+y)*y)/sum(exp(x*y)/(1+y))", 3, 1),
    ("sum(exp(-norm2(x-y))*y)/sum(exp(-norm2(x-y)))", 20, 1),
]


@pytest.mark.parametrize(("source", "n", "d"), WEIGHTED)
@pytest.mark.parametrize("wrt", ["others", "token", "all"])
def test_weighted_means_are_never_steeper_than_the_bound(source, n, d, wrt):
    f = target(source, n=n, d=d)
    found = lipschitz_bound(f, wrt=wrt, boxes=256)
    moving = torch.tensor([wrt == "all" or (t == 1 if wrt == "token" else t > 0) for t in range(n)])
    assert max(float(secants(f, moving, 2000).max()), found.attained) <= found.value * (1 + 1e-9) + 1e-7


@pytest.mark.parametrize(("n", "d", "within"), [(2, 1, 1.25), (4, 1, 1.25), (8, 1, 2.0), (3, 2, 2.5)])
def test_softmax_means_are_near_what_is_attained(n, d, within):
    found = lipschitz_bound(target(GAUSS, n=n, d=d))
    assert found.attained <= found.value <= within * found.attained


def test_a_softmax_mean_of_many_tokens_is_no_steeper_than_of_few():
    assert lipschitz_bound(target(GAUSS, n=1000), boxes=200).value <= 3.001


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("sqrt(mean(norm2(x-y)))", "sqrt is infinitely steep"),
        ("1/sum_others(y)", "denominator may vanish"),
        ("log(mean_others(y))", "log of what may reach 0"),
    ],
)
def test_what_has_no_slope_is_refused_with_the_reason(source, word):
    with pytest.raises(RefusedError, match=word):
        lipschitz_bound(target(source, n=3), boxes=200)


def test_a_steep_function_of_the_own_token_alone_does_no_harm():
    assert lipschitz_bound(target("sqrt(x) + mean(y)", n=4)).value == pytest.approx(0.75)


@pytest.mark.parametrize("seed", range(60))
def test_no_pair_of_inputs_beats_the_bound(seed):
    rng = Random(seed)
    d, n = rng.choice((1, 2)), rng.randint(2, 4)
    tree = random_tree(rng, d, 4, tame=True)
    f = Target(tree, d, Box.unit(d), Tokens(n, n))
    for wrt in ("others", "token", "all"):
        try:
            found = lipschitz_bound(f, wrt=wrt, boxes=64)
        except SumformerError:
            continue
        moving = torch.tensor([wrt == "all" or (t == 1 if wrt == "token" else t > 0) for t in range(n)])
        worst = float(secants(f, moving, seed=seed).max())
        assert worst <= found.value * (1 + 1e-9) + 1e-6 * (1 + found.value)  # 1e-6: differences of rounded values
        assert found.attained <= found.value


@pytest.mark.parametrize("seed", range(40))
def test_values_and_gradients_lie_in_their_enclosures(seed):
    rng = Random(1000 + seed)
    d, n = rng.choice((1, 2)), rng.randint(2, 4)
    tree = random_tree(rng, d, 4, tame=True)
    generator = np.random.default_rng(seed)
    lo = generator.uniform(0, 0.7, (8, n, d))
    hi = lo + generator.choice([0.01, 0.3], (8, 1, 1))
    slopes = TokenSlopes(Interval(lo, hi), [Interval.point(1.0)] * n, [True] * n, np.ones(d)).of(tree)
    X = torch.tensor(lo + generator.uniform(0, 1, (8, n, d)) * (hi - lo), requires_grad=True)
    f = Target(tree, d, Box.unit(d), Tokens(n, n))
    value = f(X)[:, 0] + 0 * X.sum()  # a constant tree has a gradient too
    inside = slopes.value.broadcast_to(tuple(value.shape))
    seen = value.detach().numpy()
    assert bool((~inside.defined | ((inside.lo <= seen + 1e-9) & (seen <= inside.hi + 1e-9))).all())
    for c in range(f.width):
        gradient = torch.autograd.grad(value[:, c].sum(), X, retain_graph=True)[0]
        flat = gradient.flatten(1).numpy()
        box = slopes.gradient.broadcast_to((8, f.width, n * d))[:, c]
        size = 1e-7 * (1 + np.abs(flat))
        assert bool((~box.defined | ((box.lo <= flat + size) & (flat <= box.hi + size))).all())
        length = np.broadcast_to(slopes.length, (8, f.width))[:, c]
        assert bool((np.abs(flat).sum(1) <= length * (1 + 1e-7) + 1e-7).all())
