"""Route symmetric: certified, attacked, refused; targets with and without a sum structure, none of it used."""

from __future__ import annotations

import pytest
import torch

from sumformer.certificates.attack import attack
from sumformer.errors import InputError, RefusedError
from sumformer.targets import target
from sumformer.theorems.alberti_2023.arithmetic import ARITHMETICS
from sumformer.theorems.alberti_2023.symmetric_route import symmetric_estimate, symmetric_route
from sumformer.theorems.construction import construct, load

GAUSSIAN = "sum(exp(-norm2(x - y))*y)/sum(exp(-norm2(x - y)))"
ATTENTION = "sum(exp(2*dot(x, y))*y)/sum(exp(2*dot(x, y)))"
LOG = "log(1 + sum(norm2(x - y)))"
SIN = "sin(x[0] + total(sum(y)))"
PRODUCT = "exp(sum_others(log(1 + dot(x, y)))/4)"
NESTED = "sum_others(exp(-norm2(y - mean(y))))"

FAST = [
    (GAUSSIAN, 3, 1, 1e-2),
    (ATTENTION, 2, 1, 1e-1),
    (LOG, 4, 1, 1e-2),
    (SIN, 5, 1, 1e-3),
    (PRODUCT, 3, 1, 1e-3),
    (NESTED, 4, 1, 1e-2),
    ("x**2", 1, 1, 1e-6),
    ("cat(sin(x[0] + total(mean(y))), cos(total(x)*mean_others(y[1])))", 2, 2, 1e-2),
]


@pytest.mark.parametrize(("source", "n", "d", "epsilon"), FAST)
def test_the_bound_holds_and_is_near(source: str, n: int, d: int, epsilon: float):
    f = target(source, n=n, d=d)
    built = symmetric_route(f, epsilon, ARITHMETICS["float64"])
    assert built.route == "symmetric"
    assert built.total <= epsilon
    worst = attack(f, built.network, seconds=2.0, effort="quick").worst
    assert worst <= built.total
    if epsilon > 1e-6:
        assert built.total <= 4 * worst  # asked: a median ≤ 3, none above 25
    assert built.latent_dimension == built.network.latent_dimension == len(built.network.features)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1e-1, 1e-2, 1e-3])
@pytest.mark.parametrize(("n", "d"), [(6, 1), (8, 1), (3, 2)])
@pytest.mark.parametrize("source", [GAUSSIAN, ATTENTION, LOG, SIN, PRODUCT, NESTED])
def test_the_sizes_asked_for(source: str, n: int, d: int, epsilon: float):
    f = target(source, n=n, d=d)
    built = symmetric_route(f, epsilon, ARITHMETICS["float64"])
    worst = attack(f, built.network, seconds=10.0).worst
    assert worst <= built.total <= min(epsilon, 25 * worst)


@pytest.mark.parametrize("dtype", ["float32", "mixed"])
def test_other_arithmetics(dtype: str):
    construction = construct(LOG, 1e-2, route="symmetric", n=3, dtype=dtype)
    certificate = construction.certificate
    assert certificate.total <= 1e-2
    assert attack(construction.target, construction.network, seconds=2.0, effort="quick").worst <= certificate.total
    rounding = {term.name: term.bound for term in certificate.terms}["rounding"]
    assert rounding > 1e-8  # an output of 24 bits is rounded


def test_any_box():
    f = target("exp(-mean_others(norm2(x - 2*y)))/(3 + total(x))", n=3, box="-1:-1/3")
    built = symmetric_route(f, 1e-3, ARITHMETICS["float64"])
    assert attack(f, built.network, seconds=2.0, effort="quick").worst <= built.total <= 1e-3


def test_through_the_front_door(tmp_path):
    construction = construct(PRODUCT, 1e-2, route="symmetric", n=3)
    X = torch.rand(2, 3, 1, dtype=torch.float64)
    construction.save(tmp_path)
    again = load(tmp_path)
    assert torch.equal(again(X), construction(X))
    assert again.certificate.route == "symmetric"
    assert float((construction(X) - construction.target(X)).abs().max()) <= construction.certificate.total
    constants = construction.certificate.constants
    assert len(constants["ellipses"]) == 2
    assert constants["kept"] <= constants["orbits"]
    with pytest.raises(InputError, match="n = 4"):
        construction(torch.rand(2, 4, 1, dtype=torch.float64))
    with pytest.raises(InputError, match="queries must be the sources"):
        construction(X, sources=torch.rand(2, 3, 1, dtype=torch.float64))


@pytest.mark.parametrize(
    ("source", "domain", "message"),
    [
        (GAUSSIAN, {"n": "any"}, "fix n"),
        (GAUSSIAN, {"n": "..4"}, "fix n"),
        (GAUSSIAN, {"n": 40}, "variables"),
        ("max(norm(x - y))", {"n": 3}, "analytic"),
        ("sum(norm(x - y))", {"n": 3, "d": 2}, "analytic"),
        ("sum(exp(-400*norm2(x - y)))", {"n": 6}, "orbits"),
        ("1/(x + mean_others(y))", {"n": 3}, "analytic"),
    ],
)
def test_refusals_say_why(source: str, domain: dict[str, object], message: str):
    f = target(source, **domain)
    with pytest.raises(RefusedError, match=message):
        symmetric_route(f, 1e-2, ARITHMETICS["float64"])
    estimate = symmetric_estimate(f, 1e-2, ARITHMETICS["float64"])
    assert not estimate.possible
    assert message in estimate.why


def test_rounding_alone_can_be_too_much():
    with pytest.raises(RefusedError, match="float64") as refusal:
        symmetric_route(target(SIN, n=4), 1e-6, ARITHMETICS["float32"])
    assert refusal.value.reachable is not None
    assert refusal.value.reachable > 1e-6


def test_an_estimate_is_what_is_built():
    f = target(LOG, n=3)
    estimate = symmetric_estimate(f, 1e-2, ARITHMETICS["float64"])
    built = symmetric_route(f, 1e-2, ARITHMETICS["float64"])
    assert estimate.possible
    assert estimate.reachable is not None
    assert estimate.reachable <= 1e-2
    assert f"{built.constants['orbits']:,}" in estimate.why


def test_the_constant_zero_is_left_to_route_exact():
    with pytest.raises(RefusedError, match="0 everywhere"):
        construct("sum(norm2(x - x)*y[0])", 0.3, route="symmetric", n=2, d=1)
    assert construct("sum(norm2(x - x)*y[0])", 0.3, n=2, d=1).certificate.route == "exact"
