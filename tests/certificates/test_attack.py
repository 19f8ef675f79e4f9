"""The attack finds what is wrong, finds the worst case rather than a typical one, and stays inside the domain."""

import copy
import io
from fractions import Fraction

import flint
import pytest
import torch

from sumformer.certificates.attack import attack, violation
from sumformer.certificates.attack_inputs import InputSpace, Multisets
from sumformer.certificates.weighted_value import weighted_value
from sumformer.certificates.witness import Witness
from sumformer.errors import InputError
from sumformer.targets import Box, Tokens
from sumformer.targets.target import target
from sumformer.theorems.construction import construct
from sumformer.theorems.verification import examine

GAUSSIAN = "sum(exp(-{c}*norm2(x - y))*y)/sum(exp(-{c}*norm2(x - y)))"
LONG = 600.0  # a time limit that does not bind


def quick(construction, **options):
    return attack(construction.target, construction.network, effort="quick", seconds=LONG, **options)


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def gaussian():
    return construct(GAUSSIAN.format(c=1), 1e-3)


# ---- errors that were planted


@pytest.mark.parametrize("dtype", ["float64", "mixed", "float32"])
@pytest.mark.parametrize("source", [GAUSSIAN.format(c=1), "mean(tanh(x*y))", "mean_others(cos(x - y))"])
def test_a_planted_error_is_found_and_confirmed(source, dtype):
    construction = construct(source, 1e-3, dtype=dtype)
    total = construction.certificate.total
    assert not violation(quick(construction), total)[0]
    network = copy.deepcopy(construction.network)
    with torch.no_grad():
        network.coefficients[0][0, -1] += 20e-3
    result = attack(construction.target, network, effort="quick", seconds=LONG)
    violated, refined = violation(result, total)
    assert result.worst > total
    assert violated
    assert refined == pytest.approx(result.worst, rel=1e-6)


def test_an_error_in_a_small_region_is_found(gaussian):
    """Only far tokens see the highest feature pair; uniformly random ones average it away."""
    network = copy.deepcopy(gaussian.network)
    with torch.no_grad():
        network.coefficients[0][-1, -1] += 5e-3
    assert violation(attack(gaussian.target, network, effort="quick"), gaussian.certificate.total)[0]


def test_a_network_that_is_not_finite_is_refuted(gaussian):
    network = copy.deepcopy(gaussian.network)
    with torch.no_grad():
        network.coefficients[0][0, 0] = float("nan")
    result = attack(gaussian.target, network, effort="quick")
    assert result.worst == float("inf")
    assert violation(result, 1e300) == (True, float("inf"))


# ---- the worst case


def test_the_worst_case_is_far_above_what_random_tokens_show():
    construction = construct(GAUSSIAN.format(c=4), 1e-3, d=2)
    X = torch.rand(64, 50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        typical = float((construction.target(X) - construction.network(X)).abs().max())
    result = quick(construction)
    assert result.worst >= 20 * typical
    assert result.worst >= 20 * result.by_kind["random"]
    assert result.worst <= construction.certificate.total <= 10 * result.worst
    assert sum(result.witness.weights) > 1000  # a crowd far away outweighs what is near


@pytest.mark.parametrize("source", ["mean(sigmoid((x - y)/0.1))", "mean(exp(-norm2(x - y)/(2*0.35**2)))"])
def test_certificates_of_means_are_within_a_factor_of_the_worst_case(source):
    construction = construct(source, 1e-4)
    assert construction.certificate.total <= 10 * quick(construction).worst


# ---- inside the domain

DOMAINS = [("any", "float64"), ("any", "float32"), ("any", "mixed"), ("2", "float64"), ("3", "float32")]
DOMAINS += [("..7", "float64"), ("1000", "float64"), ("2..5", "mixed"), ("any..50", "float64")]


CASES = [(source, *domain) for source in ("mean(exp(x*y))", "x*mean_others(sin(x - y)*y)") for domain in DOMAINS]
CASES += [("mean(exp(x*y))", "1", "float64")]


@pytest.mark.parametrize(("source", "tokens", "dtype"), CASES)
def test_a_witness_is_a_multiset_of_the_domain(source, tokens, dtype):
    construction = construct(source, 1e-2, n=tokens, box="0.1:0.3", dtype=dtype)
    result = quick(construction)
    witness = result.witness
    assert construction.target.tokens.allows(witness.n)
    assert min(witness.weights) >= 1
    construction.target.box.check(witness.tokens[None])
    outside = construction.network.outside
    assert torch.equal(witness.tokens.to(outside).double(), witness.tokens)
    assert result.worst <= construction.certificate.total
    if witness.n <= 1000:
        X = witness.X()
        assert X.shape == (1, witness.n, 1)
        with torch.no_grad():
            wanted, got = construction.target(X)[0, 0], construction.network(X.to(outside))[0, 0]
        noise = {"float64": 1e-13, "mixed": 1e-7, "float32": 1e-5}[dtype]
        torch.testing.assert_close(wanted, torch.tensor(witness.wanted, dtype=torch.float64), rtol=1e-13, atol=1e-13)
        torch.testing.assert_close(got.double(), torch.tensor(witness.got, dtype=torch.float64), rtol=noise, atol=noise)


def test_counts_are_whole_and_add_up():
    generator = torch.Generator().manual_seed(0)
    n = torch.tensor([4.0, 5.0, 10.0, 1e9]).double().repeat(50)
    logits = torch.randn(200, 4, generator=generator, dtype=torch.float64) * 10
    weights = Multisets("test", torch.zeros(200, 4, 1), logits, n).weights()
    assert torch.equal(weights, weights.round())
    assert float(weights.min()) >= 1
    assert torch.equal(weights.sum(1), n)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_points_stay_inside_boxes_whose_ends_are_not_representable(dtype):
    box = Box((Fraction(1, 3), Fraction(-1, 10)), (Fraction(2, 3), Fraction(3, 10)))
    space = InputSpace(box, Tokens.any(), dtype, 10**9, torch.Generator().manual_seed(0))
    for points in (space.corners()[None], space.faces(100, 3), space.project(torch.randn(100, 3, 2).double())):
        box.check(points)
        assert torch.equal(points.to(dtype).double(), points)
    assert len(space.corners()) == 4


# ---- f on weighted multisets

SOURCES = [
    "mean(exp(x*y)*y)",
    "x + x*sum_others(y)**2 - mean(y)",
    "mean_others(y/(x + y))",
    "max(norm(x - y)) - min(y)",
]
SOURCES += [
    "cat(mean((y - mean_others(y))**2), sigmoid(x[0]), abs(x), 3)",
    "sqrt(sum(y**2))*log(2 + mean(y))",
    "mean(y)",
]


@pytest.mark.parametrize("source", SOURCES)
def test_weighted_value_is_that_of_the_copies(source):
    f = target(source, n="2..100", d=2, box="1:2")
    tokens = 1 + torch.rand(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    counts = (2, 1, 5, 3)
    value = weighted_value(f, tokens[None], torch.tensor([counts], dtype=torch.float64))[0]
    witness = Witness(f, tokens, counts, tuple(value.tolist()), tuple(value.tolist()))
    torch.testing.assert_close(value, f(witness.X())[0, 0], rtol=1e-13, atol=1e-13)
    with flint.ctx.workprec(200):
        balls = [float(v) for v in witness.balls(flint.arb)]
    torch.testing.assert_close(value, torch.tensor(balls, dtype=torch.float64), rtol=1e-13, atol=1e-13)


# ---- what it returns


def test_the_same_seed_gives_the_same_witness(gaussian):
    first, second, other = quick(gaussian, seed=3), quick(gaussian, seed=3), quick(gaussian, seed=4)
    assert first.worst == second.worst
    assert first.witness.weights == second.witness.weights
    assert torch.equal(first.witness.tokens, second.witness.tokens)
    assert first.by_kind == second.by_kind
    assert other.by_kind != first.by_kind


def test_progress_and_the_time_limit(gaussian):
    seen = []
    result = attack(
        gaussian.target, gaussian.network, seconds=0.0, progress=lambda kind, worst: seen.append((kind, worst))
    )
    assert len(seen) == 1
    assert result.by_kind == {seen[0][0]: seen[0][1]}
    assert result.worst == pytest.approx(seen[0][1], rel=1e-6)


def test_rounding_of_the_target_is_no_violation():
    """An exact network against a bound below float64: what the attack sees is noise, and the balls say how much."""
    construction = construct("x - mean(y)", 1e-6)
    result = quick(construction)
    violated, refined = violation(result, construction.certificate.total)
    assert not violated
    assert refined <= 4e-16


def test_a_witness_prints(gaussian):
    from rich.console import Console

    witness = quick(gaussian).witness
    text = str(witness)
    assert "the own token" in text
    assert f"n = {witness.n}" in text
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(witness)
    assert "|f − N|" in console.export_text()
    with pytest.raises(InputError, match="expected n ≤ 1"):
        Witness(witness.target, witness.tokens, (5,) * len(witness.weights), (0.0,), (0.0,)).X(most=1)


# ---- where f is no number


@pytest.mark.parametrize("places", [False, True])
def test_an_error_that_is_no_number_is_not_below_any_bound(places):
    c = construct("mean(y)", 1e-3, n=2, positions=places)
    object.__setattr__(c, "target", target("mean(y) + 0*log(x - 9)", n=2, positions=places))
    found, refuted = examine(c, c.certificate.total)
    assert found.worst != found.worst
    assert refuted


def test_inputs_where_f_is_no_number_hide_no_others():
    """In float64 e^(1000 x) − e^(1000 x) is NaN for most x; there the error is unknown, not the answer."""
    c = construct("mean(y)", 1e-3, n=2)
    object.__setattr__(c, "target", target("mean(y) + 1e-9*tanh(exp(1000*x) - exp(1000*x))", n=2))
    found, refuted = examine(c, c.certificate.total)
    assert 0 <= found.worst <= c.certificate.total
    assert not refuted
