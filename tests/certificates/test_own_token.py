"""The own token is among those summed: Σ_j b_j K_j ≥ κ Σ_j b_j with κ > 0 for kernels that vanish far away."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tampered import Tampered

from sumformer.certificates.attack import attack
from sumformer.certificates.certificate import OWN_TOKEN
from sumformer.certificates.checker import check
from sumformer.certificates.checker.interval import Interval
from sumformer.certificates.checker.own_token import mean_with_own, sum_with_own
from sumformer.errors import InputError, RefusedError
from sumformer.targets import parse
from sumformer.targets.domain import Box, Tokens
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.own_token import least_share
from sumformer.theorems.construction import construct, load

SHARP = "sum(exp(-64*norm2(x-y))*y)/sum(exp(-64*norm2(x-y)))"
CASES = {
    "attention": (SHARP, {"n": "..1000"}),
    "attention in the plane": (SHARP, {"n": "..1000", "d": 2}),
    "means": ("mean(exp(-100*(x-y)**2)*(y-x))/mean(exp(-100*(x-y)**2))", {"n": "..500"}),
    "a weight of y": ("sum(exp(-64*(x-y)**2)*(1+y)*y)/sum(exp(-64*(x-y)**2)*(1+y))", {"n": "..200"}),
    "log density": ("log(mean(exp(-64*(x-y)**2)))", {"n": "..1000"}),
    "log-sum-exp": ("log(sum(exp(-64*(x-y)**2)))", {"n": "..100"}),
    "softmax of half a sum": ("x/sum(exp(-64*(x-y)**2))", {"n": "..100"}),
}


@pytest.fixture(scope="module")
def sharp(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own") / "sharp"
    construct(SHARP, 1e-3, n="..1000").save(folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_kernels_that_vanish_far_away_are_certified(tmp_path, name):
    source, options = CASES[name]
    made = construct(source, 1e-3, **options)
    made.save(tmp_path)
    found = check(tmp_path)
    assert found.verified
    assert OWN_TOKEN in found.assumptions
    assert attack(made.target, made.network, seconds=2.0, effort="quick").worst <= found.bound


def test_where_any_query_can_be_served_the_own_token_is_not_needed():
    made = construct("sum(exp(-norm2(x-y))*y)/sum(exp(-norm2(x-y)))", 1e-3, n="..1000")
    assert OWN_TOKEN not in made.certificate.assumptions
    x = torch.rand(1, 5, 1, dtype=torch.float64)
    assert made(x, sources=torch.rand(1, 9, 1, dtype=torch.float64)).shape == (1, 5, 1)


def test_queries_that_are_not_summed_are_refused(sharp):
    made = load(sharp)
    x = torch.rand(1, 6, 1, dtype=torch.float64)
    weights = torch.tensor([[1, 2, 3, 1, 1, 7]])
    assert torch.equal(made(x, weights=torch.ones(1, 6)), made(x))
    assert made(x, weights=weights).shape == (1, 6, 1)
    for wrong in ({"sources": x}, {"weights": weights - 1}):
        with pytest.raises(InputError, match="among the sources"):
            made(x, **wrong)
    mask = torch.tensor([[0, 1, 1, 0, 0, 1]])
    assert made(x, weights=weights - 1, attention_mask=mask).shape == (1, 6, 1)


def test_one_token_against_all_others_in_a_corner(sharp):
    made = load(sharp)
    x = torch.ones(1, 1000, 1, dtype=torch.float64)
    x[0, 0] = 0.4465
    got = made(x)[0, 0, 0]
    wanted = made.target(x[:, :1], sources=x)[0, 0, 0]
    assert (got - wanted).abs() <= made.certificate.total
    assert (got - wanted).abs() > 0.1 * made.certificate.total


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["assumptions"].remove(OWN_TOKEN),
        lambda c: c["assumptions"].append(OWN_TOKEN),
        lambda c: c.update(tokens="..5000"),
        lambda c: c.update(tokens="any"),
    ],
    ids=["not said", "said twice", "more tokens", "any tokens"],
)
def test_what_the_certificate_says_of_it_is_needed(tmp_path, sharp, change):
    assert not check(Tampered(sharp, tmp_path / "edited").edit("certificate", change).folder).verified


def test_sums_over_the_others_do_not_hold_the_own_token():
    with pytest.raises(RefusedError):
        construct(SHARP.replace("sum", "sum_others"), 1e-3, n="2..1000")


@pytest.mark.parametrize("tokens", ["..50", "..500"])
def test_the_bound_is_attained(tmp_path, tokens):
    construct("sum(exp(-100*(x-y)**2)*y)/sum(exp(-100*(x-y)**2))", 1e-3, n=tokens).save(tmp_path / "net")
    n = int(tokens.removeprefix(".."))

    def move(tensors):
        for coefficients in tensors.values():
            coefficients[0, 0] += 0.02 / n

    saved = Tampered(tmp_path / "net", tmp_path / "moved").weights(move)
    bound, made = check(saved.folder).bound, load(saved.folder)
    worst = attack(made.target, made.network, seconds=3.0, effort="quick").worst
    assert worst <= bound <= 1.25 * worst


def test_the_least_share_is_a_lower_bound_and_is_attained():
    kernel, channel = parse("exp(-20*(x-y)**2)", 1, free_y=True), parse("1 + y", 1, free_y=True)
    n, far = 30, np.exp(-20.0)
    found = least_share([kernel], channel, far, 2.0, Cells(Box.parse("0:1", 1)), n)
    rng = np.random.default_rng(0)
    for _ in range(200):
        x = np.concatenate([rng.random(1), rng.integers(0, 2, n - 1) + rng.normal(0, 0.1, n - 1)]).clip(0, 1)
        b = 1 + x
        assert (b * np.exp(-20 * (x - x[0]) ** 2)).sum() >= found * b.sum()
    x = np.concatenate([[0.0], np.ones(n - 1)])
    assert ((1 + x) * np.exp(-20 * (x - x[0]) ** 2)).sum() <= found * (1 + x).sum() * (1 + 1e-9)


@pytest.mark.parametrize(
    ("low", "own", "high", "least", "most"), [(1, 2, 5, 3, 10), (-5, -2, 5, 1, 4), (0, 1, 1, 2, 2)]
)
def test_ranges_with_the_own_term(low, own, high, least, most):
    others, mine, tokens = Interval(low * 1.0, high * 1.0), Interval(own * 1.0, own * 1.0), Tokens(least, most)
    ends = [(own + (n - 1) * end, n) for n in (least, most) for end in (low, high)]
    sums, means = [s for s, _ in ends], [s / n for s, n in ends]
    total, mean = sum_with_own(others, mine, tokens), mean_with_own(others, mine, tokens)
    assert (total.lo, total.hi) == pytest.approx((min(sums), max(sums)), rel=1e-12)
    assert (mean.lo, mean.hi) == pytest.approx((min(means), max(means)), rel=1e-12)
    assert total.lo <= min(sums)
    assert max(sums) <= total.hi
    assert mean.lo <= min(means)
    assert max(means) <= mean.hi


def test_weights_that_are_negative_far_away_raise_the_rounding(tmp_path):
    """K̃ = K − 0.45/n is negative at far tokens: a mean with these weights may leave the range of what it averages."""
    n, share = 8, 0.45
    kernel = "exp(-64*(x[0]-y[0])**2)"
    construct(f"sum(x[0]*(2*y[0]-1)*{kernel})/sum({kernel})", 0.1, d=2, n=f"..{n}", dtype="float32").save(
        tmp_path / "net"
    )
    a, b, big = 1016199 / 2**20, 294999 / 2**20, 2**40
    bump = f"max(0, 65600 - 2000000000*(abs(x[0] - {a!r}) + abs(x[1] - {b!r})))"  # nothing but near (a, b)

    def own_factor(config):
        term = dict(config["reductions"][0]["components"][0][0])
        term["own"] = f"x[0] + ((({bump} + {big}) - {big}) - {bump})"  # x[0], but for rounding near (a, b)
        term["polynomial"] = [[[1, 0], "1"]]
        config["reductions"][0]["components"][0] = [term]

    def move(tensors):
        for coefficients in tensors.values():
            coefficients[0, 0] -= np.float32(share / n)

    forged = Tampered(tmp_path / "net", tmp_path / "forged").edit("config", own_factor).weights(move)
    bound, made = check(forged.folder).bound, load(forged.folder)
    X = torch.zeros(1, n, 2)
    X[0, 0] = torch.tensor([a, b])
    error = float((made.network(X).double() - made.target(X.double())).abs().max())
    assert error > 1.0
    assert error <= bound
