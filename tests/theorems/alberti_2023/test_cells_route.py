"""Route cells: certified, attacked, verified, close to what the attack finds; refusals name the ε within reach."""

import pytest
import torch

import sumformer
from sumformer.certificates.attack import attack, violation
from sumformer.certificates.checker import check
from sumformer.errors import DomainError, InputError, RefusedError
from sumformer.nn import CellSumformer
from sumformer.targets import target
from sumformer.theorems.alberti_2023.arithmetic import ARITHMETICS
from sumformer.theorems.alberti_2023.cells_route import cells, cells_estimate
from sumformer.theorems.routes import FEW, in_order

FLOAT64 = ARITHMETICS["float64"]
GAUSSIAN = "exp(-9*norm2(x - y))"


def build(source, epsilon, **domain):
    return sumformer.construct(source, epsilon, route="cells", **domain)


# source, ε, domain, and the least part of the bound that an attack must find: less than 0.9 where the own token, which
# is always among those that are reduced, keeps a maximum up, or where several reductions would have to move together
ATTAINED = [
    ("max(norm(x - y))", 0.1, {"d": 2}, 0.9),
    ("max(y) - min(y)", 0.01, {"d": 5, "box": "-1:1"}, 0.9),
    ("x*max(norm(x - y)) + min(y)", 0.2, {"d": 2, "box": "0:1,-2:2"}, 0.5),
    ("mean(max(abs(x - y), 1/10))", 0.01, {"d": 1}, 0.9),
    ("mean(norm(y - mean(y)))", 0.1, {"d": 2}, 0.3),
    (f"max({GAUSSIAN}*y)", 0.1, {"d": 1}, 0.3),
    ("sum_others(abs(x - y))", 1.0, {"d": 1, "n": "2..100"}, 0.9),
    ("sum(exp(-3*norm(x - y))*y)/sum(exp(-3*norm(x - y)))", 0.25, {"d": 2}, 0.3),
    ("sum((y - 2)*y**2)/sum(y - 2)", 0.01, {"d": 1}, 0.3),
    ("mean(exp(-norm2(x - y)/(1/2 + mean_others(norm(x - y)))))", 0.1, {"d": 1}, 0.1),
    ("min(sin(6*y)*x)", 0.05, {"d": 1, "box": "-1:1"}, 0.8),
]


@pytest.mark.parametrize(("source", "epsilon", "domain", "attained"), ATTAINED, ids=[case[0] for case in ATTAINED])
def test_every_built_case_survives_the_attack_that_comes_near(source, epsilon, domain, attained):
    c = build(source, epsilon, **domain)
    found = attack(c.target, c.network, effort="quick", seconds=3)
    assert not violation(found, c.certificate.total)[0]
    assert found.worst >= attained * c.certificate.total
    assert 0.9 * epsilon <= c.certificate.total <= epsilon


@pytest.mark.parametrize("dtype", ["float64", "mixed"])
def test_it_verifies_and_runs_on_any_number_of_tokens(dtype, tmp_path):
    c = build("max(norm(x - y))*mean(y[0])", 0.2, d=2, dtype=dtype)
    c.save(tmp_path)
    assert sumformer.verify(tmp_path).verified
    for n in (1, 7, 3000):
        X = torch.rand(2, n, 2, dtype=c.network.outside, generator=torch.Generator().manual_seed(n))
        assert float((c(X).double() - c.target(X.double())).abs().max()) <= c.certificate.total


def test_queries_meet_other_sources_so_many_times_as_these_count():
    """The certificate is of any multiset: x need not be in it, but where the own token is left out."""
    c = build("min(norm(x - y)) + mean(norm(x - y))", 0.1, d=2)
    g = torch.Generator().manual_seed(3)
    X, Z = (torch.rand(2, n, 2, dtype=torch.float64, generator=g) for n in (40, 300))
    weights = torch.randint(0, 3, (2, 300), generator=g)
    for b in range(2):
        repeated = Z[b].repeat_interleave(weights[b], 0)
        distances = torch.cdist(X[b], repeated)
        wanted = (distances.amin(1) + distances.mean(1)).unsqueeze(-1)
        found = c(X[b : b + 1], sources=Z[b : b + 1], weights=weights[b : b + 1])[0]
        assert float((found - wanted).abs().max()) <= c.certificate.total
    with pytest.raises(InputError, match="leave out the own token"):
        build("mean_others(norm(x - y))", 0.1, d=2)(X, sources=Z)


def test_it_is_taken_when_no_other_route_can_and_says_why():
    c = sumformer.construct("max(norm(x - y))", 0.1, d=2)
    assert c.certificate.route == "cells"
    assert any("sums" in reason for reason in c.passed_over)
    assert "15 × 15 cells; reductions run over pairs" in c.certificate.constants["why"]


def test_grid_comes_first_where_its_code_is_short():
    assert in_order(target("max(y)", n=FEW))[-2:] == ("grid", "cells")
    assert in_order(target("max(y)", n=f"..{FEW + 1}"))[-2:] == ("cells", "grid")
    assert in_order(target("max(y)"))[-2:] == ("cells", "grid")


def test_a_coordinate_costs_what_it_moves():
    """Of max(10|y_0| + y_1) the first takes ten times as many cells; what is not read takes one."""
    net = build("max(10*abs(y[0] - x[0]) + y[1]) + x[2]", 0.1, d=3).network
    assert isinstance(net, CellSumformer)
    first, second, third = net.cells
    assert 15 <= first / second <= 25  # x moves it too
    assert third == 1


def test_reductions_of_other_coordinates_are_counted_apart():
    c = build("max(y) - mean(abs(x - y))", 0.01, d=6)
    assert c.certificate.latent_dimension == sum(c.network.cells)
    assert "6 grids of 155 cells, one for each set of coordinates" in c.certificate.constants["why"]


def test_sums_that_cancel_are_means_for_a_range_of_n_too():
    """n between 1 and 1000 costs no more cells than n = 5 alone."""
    source = "sum(abs(x - y)*y)/sum(1 + y)"
    few, many = (build(source, 0.02, d=1, n=n).certificate.latent_dimension for n in ("5", "..1000"))
    assert many == few


def test_no_error_is_offered_that_0_would_meet():
    f = target("max(norm(x - y))", d=28)
    with pytest.raises(RefusedError, match="no useful ε") as refusal:
        cells(f, 1e-3, FLOAT64)
    assert refusal.value.reachable is None


def test_what_the_budget_does_not_allow_is_refused_with_what_it_does():
    f = target("max(norm(x - y))", d=2)
    with pytest.raises(RefusedError, match="reachable here: ε = ") as refusal:
        cells(f, 1e-5, FLOAT64)
    reachable = refusal.value.reachable
    assert reachable is not None
    assert reachable < 0.02
    assert cells(f, reachable, FLOAT64).total <= reachable


@pytest.mark.parametrize(
    ("source", "options", "why"),
    [
        ("mean(sqrt(abs(x - y)))", {}, "no modulus of continuity"),
        ("max(sqrt(y))", {}, "no modulus of continuity"),
        ("max(abs(x - y))", {"dtype": "float32"}, "float64"),
        ("max(abs(x - y)*j)", {"n": 3, "positions": True}, "positions"),
        ("max(y)/mean(y)", {}, "mean.y. lies in .0, 1."),
    ],
)
def test_what_it_does_not_take_is_refused(source, options, why):
    with pytest.raises((RefusedError, DomainError), match=why):
        build(source, 0.1, d=1, **options)


@pytest.mark.parametrize("source", ["max(norm(x - y))", "max(y)*x", "mean(norm(y - mean(y)))", "max(sqrt(y))"])
def test_estimates_are_what_is_built(source):
    f = target(source, d=2)
    estimate = cells_estimate(f, 0.1, FLOAT64)
    try:
        built = cells(f, 0.1, FLOAT64)
    except (RefusedError, DomainError):
        assert not estimate.possible
        return
    assert estimate.possible
    assert estimate.latent_dimension == built.latent_dimension
    assert built.total <= 0.1


def test_boxes_whose_numbers_are_far_apart_are_refused_or_hold():
    f = target("max(y)", d=1, box="9007199254740992:9007199254741002")  # neighbours differ by 2
    with pytest.raises((RefusedError, DomainError)):
        cells(f, 1e-3, FLOAT64)
    c = build("max(abs(x - y))", 0.01, d=1, box="1000000:1000001")
    X = 1e6 + torch.rand(1, 50, 1, dtype=torch.float64)
    assert float((c(X) - c.target(X)).abs().max()) <= c.certificate.total


def test_constant_bodies_and_no_reductions_need_no_cells():
    assert build("x", 0.1, d=2).certificate.latent_dimension == 0
    assert build("x + mean(1 + 0*y)", 0.1, d=2).certificate.latent_dimension == 2  # one for each coordinate


@pytest.mark.parametrize(
    ("source", "epsilon", "d", "box", "X"),
    [
        ("max(0, max(x+0*y) - x - 0.1)", 1e-3, 1, "0:1", [[0.0]] * 3),
        ("max(0, 1 - 10*abs(x))*mean(max(0, x - 0.5)*(1 + y))", 1e-3, 1, "-0.2:1.5", [[0.0]] * 3),
        (
            "min(norm(max(x/(0.5 + x[0]**2) + 0*y)), x[1]**2/exp(x[0]))",
            1e-2,
            2,
            "0.25:1.5",
            [[0.25, 1.5], [0.25, 0.25], [0.25, 0.25]],
        ),
    ],
)
def test_small_moves_that_do_nothing_are_no_proof_for_large_ones(source, epsilon, d, box, X):
    """With one cell all of these err by 0.2 to 0.8, though tokens that move by a little move nothing."""
    c = build(source, epsilon, d=d, box=box)
    tokens = torch.tensor([X], dtype=torch.float64)
    assert float((c(tokens) - c.target(tokens)).abs().max()) <= c.certificate.total


def test_coordinates_in_which_small_moves_do_nothing_get_cells_too():
    source = "max(0, 1 - 10*abs(x[0]))*mean(max(0, x[0] - 0.5)*(1 + y[0])) + max(y[1])"
    assert min(build(source, 0.05, d=2, box="-0.2:1.5").network.cells) > 3


def test_tiny_and_huge_values(tmp_path):
    assert build("x + 1e-305*max(y)", 1e-3, d=1).certificate.latent_dimension == 1
    assert cells_estimate(target("1e-305*max(y)"), 1e-3, FLOAT64).possible
    with pytest.raises(RefusedError, match="range of float64"):
        build("1e308*mean(sin(1.7*y))", 1e307, d=1, box="-1.1:1.1")


@pytest.mark.parametrize(
    ("source", "epsilon", "box"),
    [
        ("mean(exp(y)*(sum(x*exp(y))/sum(exp(y))))/mean(exp(y))", 0.3, "-1:1"),  # inside another weighted mean
        (
            "x*(sum((0.5+y**2)/(2+sin(x))*x/(0.5+y**2))/sum((0.5+y**2)/(2+sin(x))))",
            6.0,
            "0.25:1.5",
        ),  # divided by a weight
        ("sum(((0.5+x**2)*exp(y*y))**2*y)/sum(((0.5+x**2)*exp(y*y))**2)", 0.1, "-1:1"),  # powers of products
        ("mean(exp(4*norm2(y))*sigmoid(y)*x/(0.5+x**2))/mean(sigmoid(y)*exp(4*norm2(y)))", 14.5, "-1:1"),
        ("sum(y*y)/sum(1+y*y)", 0.01, "0:1"),
        ("sigmoid(sum(x*exp(y))/sum((0.3+sigmoid(y))**-1)) + sin(min(y))", 0.942, "0.25:1.5"),  # nothing in common
    ],
)
def test_what_the_constructor_knows_of_weights_the_checker_does(source, epsilon, box, tmp_path):
    build(source, epsilon, d=1, box=box, n="..1000").save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures


def test_why_says_what_is_counted():
    said = {
        "max(y)": "that is free of n: tokens are counted in 11 cells; reductions run over cells that occur",
        "sum(abs(x - y))": "certified modulus: tokens are counted in",
        "max(y[0]) + max(abs(x[1] - y[1]))": "grids of",
        "x": "no cells, as nothing is reduced",
    }
    for source, words in said.items():
        d = 1 if "[" not in source else 2
        assert words in build(source, 0.05, d=d, n="..50" if "sum" in source else "any").certificate.constants["why"]


@pytest.mark.parametrize(
    ("source", "d", "epsilon", "box"),
    [("sin(5*max(y))*min(y)", 8, 0.2, "0:1"), ("tanh(8*max(y)*min(y))", 6, 0.2, "-1:1")],
)
def test_coordinates_of_f_are_cut_into_pieces_apart(source, d, epsilon, box, tmp_path):
    """Two reductions in each coordinate, 2d in all: a second program cuts those of one coordinate finely too."""
    build(source, epsilon, d=d, box=box).save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures
