"""Route grid: certified, attacked, close to what the attack finds; refusals name the ε within reach."""

import math

import pytest
import torch

import sumformer
from sumformer.certificates.attack import attack, violation
from sumformer.errors import InputError, RefusedError
from sumformer.nn import GridSumformer
from sumformer.nn.codes import CODES, make_code
from sumformer.targets import target
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.arithmetic import ARITHMETICS
from sumformer.theorems.alberti_2023.grid_route import grid_estimate, grid_route
from sumformer.theorems.alberti_2023.grid_tables import fill_tables
from sumformer.theorems.alberti_2023.tree_rounding import tree_rounding

MEAN, POOL, FAR = "norm(x-mean(y))", "max(y)", "max(norm(x-y))"


def build(source, epsilon, **domain):
    return sumformer.construct(source, epsilon, route="grid", **domain)


@pytest.mark.parametrize("source", [MEAN, POOL])
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 8])
def test_distance_to_the_mean_and_max_pooling(source, d, n):
    c = build(source, 0.05, n=n, d=d)
    found = attack(c.target, c.network, effort="quick", seconds=2)
    assert c.certificate.total <= 0.05
    assert found.worst <= c.certificate.total
    assert found.worst >= 0.9 * c.certificate.total  # the bound is nearly attained: L and the cells are not wasted
    assert c.certificate.latent_dimension <= n - 1 or c.network.code.startswith("lanes")


@pytest.mark.parametrize(
    ("source", "domain"),
    [
        (FAR, {"n": 4, "d": 2, "box": "-1:1"}),
        ("max(y) - min(y)", {"n": 5, "d": 1, "box": "0:3"}),
        ("x*max(norm(x-y)) + min(y)", {"n": 3, "d": 2, "box": "0:1,-2:2"}),
        ("max(exp(-norm2(x-y)))*x", {"n": 4, "d": 1}),
        ("mean(max(abs(x-y), 1/10))", {"n": "2..4", "d": 1}),
        ("max(norm(y-mean(y)))", {"n": 3, "d": 1}),
        ("sum_others(abs(x-y))", {"n": 3, "d": 1}),
        ("sum(exp(-norm2(x-y))*y)/sum(exp(-norm2(x-y)))", {"n": 3, "d": 1}),
        ("max(y)", {"n": 1, "d": 1}),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "float32", "mixed"])
def test_every_built_case_survives_the_attack(source, domain, dtype):
    c = build(source, 0.2, dtype=dtype, **domain)
    found = attack(c.target, c.network, effort="quick", seconds=2)
    assert not violation(found, c.certificate.total)[0]
    assert c.certificate.total <= 0.2
    assert [t.kind for t in c.certificate.terms] in (["enclosed", "rounding"], ["enclosed"], ["rounding"], [])


def test_it_is_taken_when_no_other_route_can_and_says_why():
    c = sumformer.construct(FAR, 0.1, n=3, d=1)
    assert c.certificate.route == "grid"
    assert any("sums" in reason for reason in c.passed_over)
    assert "certified modulus" in c.certificate.constants["why"]


def test_what_the_budget_does_not_allow_is_refused_with_what_it_does():
    f = target(FAR, n=8, d=2)
    with pytest.raises(RefusedError, match="reachable here: ε = ") as refusal:
        grid_route(f, 1e-5, ARITHMETICS["float64"])
    reachable = refusal.value.reachable
    assert reachable is not None
    assert reachable < 2e-3
    built = grid_route(f, reachable, ARITHMETICS["float64"])
    assert built.total <= reachable


def test_rounding_alone_may_be_too_much():
    with pytest.raises(RefusedError, match="rounding alone"):
        grid_route(target(POOL + " + exp(x)", n=3), 1e-8, ARITHMETICS["float32"])


def test_the_number_of_tokens_must_be_known():
    with pytest.raises(RefusedError, match="give n"):
        build(POOL, 0.1)


def test_a_range_of_n_is_counted_by_lanes():
    c = build(FAR, 0.1, n="..5", d=1)
    assert c.network.code.startswith("lanes")
    for n in range(1, 6):
        X = torch.rand(50, n, 1, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
        assert float((c(X) - c.target(X)).abs().max()) <= c.certificate.total
    with pytest.raises(InputError, match="n ≤ 5"):
        c(torch.rand(1, 6, 1, dtype=torch.float64))


def test_an_estimate_predicts_without_building():
    f = target(FAR, n=8, d=2)
    arithmetic = ARITHMETICS["float64"]
    estimate, built = grid_estimate(f, 0.05, arithmetic), grid_route(f, 0.05, arithmetic)
    assert estimate.possible
    assert estimate.latent_dimension == built.latent_dimension
    assert estimate.terms == math.prod(built.constants["cells"])
    none = grid_estimate(f, 1e-7, arithmetic)
    assert not none.possible
    assert none.reachable is not None
    assert none.reachable > 1e-7
    assert not grid_estimate(target("sqrt(mean(norm2(x-y)))", n=3), 0.1, arithmetic).possible
    assert not grid_estimate(target(FAR), 0.1, arithmetic).possible


def test_saved_and_loaded(tmp_path):
    c = build(FAR, 0.1, n=4, d=2)
    c.save(tmp_path)
    again = sumformer.load(tmp_path)
    X = torch.rand(9, 4, 2, dtype=torch.float64)
    assert isinstance(again.network, GridSumformer)
    assert torch.equal(again(X), c(X))


@pytest.mark.parametrize("box", ["0:1", "-1/3:2/7"])
@pytest.mark.parametrize("arithmetic", ["float64", "float32"])
def test_the_tables_cover_the_box_within_the_stated_radius(box, arithmetic):
    network = GridSumformer("max(y)", 1, 2, [37], "lanes", arithmetic).requires_grad_(False)
    domain = Box.parse(box, 1)
    (ratio,) = fill_tables(network, domain)
    half = float(domain.radius[0])
    t = torch.linspace(0, 1, 20_001, dtype=torch.float64)
    x = (float(domain.lower[0]) + t * 2 * half)[:, None]
    gap = (network.centre_of(network.quantise(x)).double() - x).abs().max()
    assert float(gap) <= ratio * half * (1 + 1e-12)
    assert ratio <= 1 / 37 * (1 + 1e-4)


def test_rounding_is_counted_for_the_tree_as_it_is_evaluated():
    f = target("norm(x-mean(y))/(1+max(norm2(x-y)))", n=7, d=2)
    bound = tree_rounding(f, ARITHMETICS["float32"])
    network = GridSumformer(f.source, 2, 7, [4, 4], "lanes", "float32")
    fill_tables(network, f.box)
    X = torch.rand(4000, 7, 2, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        computed = network.value(X[:, :1], X[:, 1:]).double()
    exact = f(X.double())[:, 0]
    worst = float((computed - exact).abs().max())
    assert 0 < worst <= bound < 100 * worst


def test_more_lanes_than_power_sums_means_syndromes():
    c = build(POOL, 0.01, n=4, d=2)
    assert c.network.code == "syndrome"
    assert c.certificate.latent_dimension == 3 == make_code("syndrome", 10, 4).latent_dimension


def test_a_code_asked_for_is_taken_and_all_give_the_same(tmp_path):
    X = torch.rand(5, 4, 1, dtype=torch.float64)
    made = {code: build(MEAN, 0.05, n=4, d=1, options={"code": code}) for code in CODES}
    for code, c in made.items():
        assert c.network.code == code
        assert c.certificate.latent_dimension == c.network.latent_dimension
        assert torch.equal(c(X), made["syndrome"](X))
    assert made["integer"].certificate.latent_dimension == made["integer n+1"].certificate.latent_dimension == 1
    made["integer n+1"].save(tmp_path / "one")
    assert sumformer.verify(tmp_path / "one", attack=False).verified


def test_an_opaque_function_takes_a_code_too():
    f = sumformer.target(lambda X: X.mean(1, keepdim=True).expand_as(X), n=3, d=1, lipschitz=1.0)
    assert sumformer.construct(f, 0.1, route="grid", options={"code": "integer"}).certificate.latent_dimension == 1


@pytest.mark.parametrize(
    ("options", "asked", "error", "match"),
    [
        ({"code": "nope"}, {"n": 4}, InputError, "expected one of integer"),
        ({"code": "integer"}, {"n": 4, "route": None}, InputError, "route='grid'"),
        ({"code": "syndrome"}, {"n": "..4"}, RefusedError, "one number of tokens"),
        ({"code": "lanes"}, {"n": 8, "epsilon": 1e-6}, RefusedError, "syndrome code"),
        (
            {"prefer": "depth"},
            {"n": 4},
            InputError,
            "one option, code; prefer is that of architecture .--as. linformer or ",
        ),
        ({"speed": 1}, {"n": 4}, InputError, "a sumformer has one option, code; speed is none of any architecture"),
    ],
)
def test_codes_that_are_refused(options, asked, error, match):
    with pytest.raises(error, match=match):
        sumformer.construct(MEAN, options=options, **{"route": "grid", "epsilon": 0.05, "d": 1, **asked})
