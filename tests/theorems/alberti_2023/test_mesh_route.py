"""Route mesh: what it certifies holds at its worst tokens, and what it cannot prove is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounter

import sumformer
from sumformer.certificates.checker import check
from sumformer.errors import InputError, RefusedError
from sumformer.interop.onnx import export_onnx, onnx_error
from sumformer.targets import parse
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.strip import strip_maximum

SHARP = [
    ("mean(sigmoid((x-y)/0.002))", {"d": 1}, 1e-3),
    ("mean(log(norm2(x-y)+0.001))", {"d": 2}, 2e-2),
    ("mean((y-x)/(norm2(y-x)+0.3)**1.5)", {"d": 3}, 5e-2),
    ("mean(exp(-100*norm2(x-y))*exp(y[0])*y[1])", {"d": 3}, 1e-2),
    ("sum(exp(-64*norm2(x-y))*y)/sum(exp(-64*norm2(x-y)))", {"d": 3, "n": "..100"}, 1e-2),
    ("sum_others(tanh(20*(x-y))*y)", {"d": 1, "n": "2..50", "box": (-3, 1)}, 1e-2),
    ("mean_others(1/(1+400*(x-y)**2))*x", {"d": 2, "n": "2..50", "box": "0:1,10:30"}, 1e-2),
    ("mean(abs(x-y))", {"d": 1, "box": "0:0.3"}, 1e-4),
    ("mean(norm(x-y))", {"d": 3, "box": "-1:1,0:1,0:1"}, 2e-1),
    ("mean(max(0, 1-norm(x-y)/0.3)*y[0])", {"d": 2}, 2e-2),
    ("sum_others(exp(-5*abs(x[0]-y[0]))*max(0, x[1]-y[1]))", {"d": 2, "n": "2..5"}, 1e-1),
    ("sum(exp(-10*abs(x-y))*y)/sum(exp(-10*abs(x-y)))", {"d": 1}, 1e-3),
    ("mean(exp(y[0]-9*norm(x-y))*y)/mean(exp(y[0]-9*norm(x-y)))", {"d": 2, "n": "..50"}, 5e-2),
]


def worst_tokens(c: sumformer.Construction, seed: int) -> torch.Tensor:
    """Half of the tokens lie together, the others at every distance: an error of the kernel is hardly averaged out."""
    box, n = c.target.box, min(c.target.tokens.maximum, 200)
    low, side = (torch.tensor([float(v) for v in vs], dtype=torch.float64) for vs in (box.lower, box.radius))
    generator = torch.Generator().manual_seed(seed)
    ends = low + 2 * side * torch.rand(4, 1 + n // 2, box.d, dtype=torch.float64, generator=generator)
    share = torch.rand(4, n // 2, 1, dtype=torch.float64, generator=generator).pow(3)
    near = ends[:, :1] + (ends[:, 1:] - ends[:, :1]) * share
    return torch.cat([ends[:, :1].expand(-1, n - n // 2, -1), near], dim=1)


@pytest.mark.parametrize(("source", "domain", "epsilon"), SHARP)
def test_certificates_hold_and_are_verified(source, domain, epsilon, tmp_path):
    c = sumformer.construct(source, epsilon, route="mesh", **domain)
    assert c.certificate.route == "mesh"
    assert c.certificate.total <= epsilon
    assert c.certificate.latent_dimension == c.network.latent_dimension
    X = worst_tokens(c, 0)
    assert float((c(X) - c.target(X)).abs().max()) <= c.certificate.total
    c.save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures


def test_it_is_taken_where_chebyshev_features_are_too_many():
    c = sumformer.construct("mean(sigmoid((x-y)/0.0005))", 1e-3, d=1)
    assert c.certificate.route == "mesh"
    assert any(line.startswith("sums:") for line in c.passed_over)


def test_float32_in_and_out():
    c = sumformer.construct("mean(exp(-300*norm2(x-y)))", 1e-3, d=2, route="mesh", dtype="mixed")
    X = worst_tokens(c, 1).float()
    assert c(X).dtype == torch.float32
    assert float((c(X) - c.target(X.double())).abs().max()) <= c.certificate.total


@pytest.mark.parametrize(
    ("source", "options", "reason"),
    [
        ("mean(exp(2*dot(x,y)))", {"d": 2}, "not a function of x − y"),
        ("mean(sqrt(abs(x-y)))", {"d": 1}, "smooth enough"),
        ("x - mean(y)", {"d": 1}, "no factor mixes"),
        ("mean(exp(-300*norm2(x-y)))", {"d": 2, "dtype": "float32"}, "float64"),
        ("mean(exp(-9000*norm2(x-y)))", {"d": 3}, "beyond the budget"),
    ],
)
def test_refusals_say_why(source, options, reason):
    with pytest.raises(RefusedError, match=reason):
        sumformer.construct(source, 1e-2, route="mesh", **options)


def test_padding_is_limited_as_the_roundings_are_counted():
    """Groups stand in a row: padding that spreads n tokens over more of them than n fill is not covered."""
    c = sumformer.construct("mean(sigmoid((x-y)/0.05))", 1e-2, d=1, n="..300000", route="mesh")
    group = c.network.group
    X = torch.rand(1, 3 * group, 1, dtype=torch.float64)
    keep = torch.zeros(1, 3 * group, dtype=torch.bool)
    keep[:, ::1000] = True
    with pytest.raises(InputError, match="padding"):
        c(X, attention_mask=keep)
    assert c(X[:, : 2 * group], attention_mask=keep[:, : 2 * group]).shape == (1, 2 * group, 1)


def test_strips_enclose_the_kernel():
    """M_c(δ) is at least every |k| in the strip, and near the largest."""
    kernel = parse("1/((x[0]-y[0])**2 + 3*(x[1]-y[1])**2 + 0.1)", 2, free_y=True)
    box = Box((Fraction(-1), Fraction(-2)), (Fraction(1), Fraction(2)))
    reach = 0.25
    found = strip_maximum(kernel, box, 0, (2.5, 2.5), reach)
    assert found is not None
    rng = np.random.default_rng(0)
    z = rng.uniform(-2.75, 2.75, 20_000) + 1j * rng.uniform(-reach, reach, 20_000)
    z[:100] = 1j * np.linspace(-reach, reach, 100)
    w = rng.uniform(-5, 5, 20_000)
    w[:100] = 0.0
    sampled = np.abs(1 / (z**2 + 3 * w**2 + 0.1)).max()
    assert sampled <= found <= 1.6 * sampled


def test_a_strip_with_a_pole_is_refused():
    kernel = parse("1/((x[0]-y[0])**2 + 0.04)", 1, free_y=True)
    box = Box((Fraction(0),), (Fraction(2),))
    assert strip_maximum(kernel, box, 0, (2.5,), 0.21) is None
    assert strip_maximum(kernel, box, 0, (2.5,), 0.19) is not None


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("mean(cos(30*(x-y)))", {"box": "1923.53:1924.43"}),  # the centre is no float64, and nearly one
        ("mean(exp(-(((x-y)/1e-170)*20)**2))", {"box": "0:1e-170"}),
        ("mean(y/(1+(i-j)**2))", {"n": 60, "positions": True}),
    ],
)
def test_far_small_and_placed_tokens_verify(source, options, tmp_path):
    c = sumformer.construct(source, 1e-3, d=1, route="mesh", **options)
    c.save(tmp_path)
    found = sumformer.verify(tmp_path)
    assert found.verified, found.proof.failures


def test_tiny_tolerances_are_refused_by_type():
    with pytest.raises(RefusedError):
        sumformer.construct("1e-300*mean(exp(-300*(x-y)**2))", 1e-303, route="mesh")


BY_FREQUENCIES = ("mean(max(0, 1-norm(x-y)/0.3)*y[0])", 2, 2e-2)


@pytest.mark.parametrize(("source", "d", "epsilon"), [("mean_others(sigmoid((x-y)/0.1))", 1, 1e-1), BY_FREQUENCIES])
def test_onnx(source, d, epsilon, tmp_path):
    c = sumformer.construct(source, epsilon, d=d, n="2..100000", route="mesh")
    export_onnx(c.network, tmp_path / "net.onnx", torch.rand(2, 9, d, dtype=torch.float64))
    for n in (17, 5000):  # many tokens of one node, which onnxruntime may add on several threads
        assert onnx_error(c.network, tmp_path / "net.onnx", torch.rand(3, n, d, dtype=torch.float64)) <= 1e-13


@pytest.mark.parametrize(("source", "d", "epsilon"), [("mean(sigmoid((x-y)/0.1))", 1, 1e-1), BY_FREQUENCIES])
def test_one_compilation_for_all_lengths(source, d, epsilon):
    c = sumformer.construct(source, epsilon, d=d, route="mesh")
    torch.compiler.reset()
    counter = CompileCounter()
    compiled = torch.compile(c.network, fullgraph=True, dynamic=True, backend=counter)
    for n in (5, 17, 300):
        X = torch.rand(2, n, d, dtype=torch.float64)
        torch.testing.assert_close(compiled(X), c.network(X), atol=1e-12, rtol=1e-12)
    assert counter.frame_count == 1


def test_how_nodes_are_summed_over_is_chosen_by_their_number():
    """By pairs where they are few; where their frequencies would round too much, as long as that is not too many."""
    few = sumformer.construct("mean(exp(-9*abs(x-y)))", 1e-2, d=1, route="mesh").network
    many = sumformer.construct("mean(exp(-9*abs(x-y)))", 1e-4, d=1, route="mesh").network
    assert [k["sums"] for net in (few, many) for k in net.kernels] == ["pairs", "frequencies"]


@pytest.mark.parametrize("route", ["mesh", "sums"])
@pytest.mark.parametrize(
    "source",
    [
        "1e107*mean(1e-107*exp(-500*cos(x[0]-y[0]))*exp(500*cos(x[1]-y[1])))",
        "1e-95*mean((exp(500*cos(x[0]-y[0]))*exp(-500*cos(x[1]-y[1])))*1e95)",
    ],
)
def test_numbers_lost_between_two_kernels_are_not_claimed(source, route):
    """Kernels are applied one after another: what the first makes of Σ may underflow or overflow, whatever both do."""
    with pytest.raises(RefusedError):
        sumformer.construct(source, 1e-2, d=2, n="..10", box="0:0.1", route=route)


def test_small_polynomials_of_large_channels_are_not_flushed():
    c = sumformer.construct(
        "mean(exp(700*cos(y))*(4e-305*y)*cos(x-y))", 1e-6, d=1, n="..10", box="-0.01:0.01", route="mesh"
    )
    X = torch.full((1, 1, 1), 4e-4, dtype=torch.float64)
    kept = c(X)
    torch.set_flush_denormal(True)
    try:
        flushed = c(X)
    finally:
        torch.set_flush_denormal(False)
    assert float((kept - flushed).abs().max()) <= c.certificate.total


@pytest.mark.parametrize(("source", "d"), [("mean(exp((2*(x-y))**2))", 1), ("mean(exp(norm2(x-y)))", 2)])
def test_kernels_that_grow_outside_of_the_box_verify(source, d, tmp_path):
    c = sumformer.construct(source, 1e-3, d=d, route="mesh")
    c.save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures
