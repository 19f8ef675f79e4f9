"""check of a `CellSumformer`: honest files verify, changed ones do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tampered import Change, Copy, Sample, Samples, halve, put, shift

from sumformer.certificates.attack import attack
from sumformer.certificates.checker import check
from sumformer.certificates.checker.counted.network import Network
from sumformer.certificates.checker.counted.rounding import rounding
from sumformer.errors import FileFormatError
from sumformer.nn import CellSumformer
from sumformer.targets import parse, target
from sumformer.theorems.construction import load

OPTIONS = {"route": "cells"}
KERNEL = "exp(-3*abs(x - y))"
BANDWIDTH = "exp(-norm2(x - y)/(1/2 + mean_others(norm(x - y))))"
SAMPLES: dict[str, Sample] = {
    "far": ("max(norm(x - y))", 0.1, {"d": 2}),
    "pool": ("max(y) - min(y)", 0.05, {"d": 4, "box": "-1:1"}),
    "mixed": ("max(norm(x - y))", 0.1, {"d": 2, "dtype": "mixed"}),
    "spread": ("sqrt(1/4 + mean((y - mean(y))**2))", 0.05, {"d": 1}),
    "kernel": (f"sum({KERNEL}*y)/sum({KERNEL})", 0.05, {"d": 1}),
    "negative": ("sum_others((y - 2)*y**2)/sum_others(y - 2)", 0.05, {"d": 1, "n": "2..1000"}),
    "bandwidth": (f"mean({BANDWIDTH})", 0.1, {"d": 1, "n": "2..100000"}),
    "sums": ("sum(abs(x - y))", 0.5, {"d": 1, "n": "..50"}),
    "softmax": ("sum(exp(2*y)*y)/sum(exp(2*y)) - mean(x*y)", 0.1, {"d": 3}),
    "uneven": ("max(10*abs(y[0] - x[0]) + y[1])", 0.1, {"d": 2}),
    "outside": ("x*mean(y) - sin(20*x)", 0.02, {"d": 1, "box": "2:3"}),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_honest_files_verify(samples: Samples, name: str):
    found = check(samples(name))
    assert found.verified, found.failures
    assert found.bound <= found.claimed <= found.epsilon


CERTIFICATE: list[tuple[str, str, Change]] = [
    ("far", "target", put("target")("max(norm(x - 2*y))")),
    ("far", "box", put("box")("0:2")),
    ("sums", "tokens", put("tokens")("..60")),
    ("far", "arithmetic", put("arithmetic")("mixed")),
    ("far", "route", put("route")("grid")),
    ("far", "norm", put("norm")("d_1")),
    ("far", "architecture", put("architecture")("transformer")),
    ("pool", "latent_dimension", put("latent_dimension")(lambda k: k + 1)),
    ("far", "epsilon", put("epsilon")(halve)),
    ("far", "total", put("total")(halve)),
    ("far", "assumptions", put("assumptions")([])),
    ("far", "terms", put("terms", 0, "kind")("proved")),
    ("far", "terms", put("terms", 0, "bound")(halve)),
    ("far", "cells", put("constants", "cells")([11, 12])),
    ("far", "cells", put("constants", "cells")(None)),
    ("far", "radius", put("constants", "radius", 0)(halve)),
    ("far", "radius", put("constants", "radius")([0.1])),
    ("far", "radius", put("constants", "radius", 0)("0.1")),
    ("far", "positions", put("constants", "positions")(True)),
]


def _change(change: Change) -> Change:
    """Keys that are not there are made."""

    def changed(data: Any) -> None:
        data["constants"].setdefault("positions", None)
        change(data)
        if data["constants"]["positions"] is None:
            del data["constants"]["positions"]

    return changed


@pytest.mark.parametrize(("name", "field", "change"), CERTIFICATE, ids=lambda v: v if isinstance(v, str) else "")
def test_changed_certificates_fail(copy: Copy, name: str, field: str, change: Change):
    found = check(copy(name).edit("certificate", _change(change)).folder)
    assert not found.verified
    assert found.failures


@pytest.mark.parametrize("name", ["far", "pool", "kernel", "negative", "sums", "softmax"])
def test_a_smaller_claim_names_the_term(copy: Copy, name: str):
    """Term and total both say 15 % less: consistent, and not proved."""

    def change(data: dict[str, Any]) -> None:
        lower = 0.85 * data["terms"][0]["bound"]
        data["total"], data["terms"][0]["bound"] = data["total"] - data["terms"][0]["bound"] + lower, lower

    failures = check(copy(name).edit("certificate", change).folder).failures
    assert any("'modulus of continuity at the cells'" in f for f in failures)


@pytest.mark.parametrize("name", ["far", "pool", "sums", "kernel"])
def test_roundings_are_counted(copy: Copy, name: str):
    def change(data: dict[str, Any]) -> None:
        lower = data["terms"][1]["bound"] / 100
        data["total"], data["terms"][1]["bound"] = data["total"] - data["terms"][1]["bound"] + lower, lower

    failures = check(copy(name).edit("certificate", change).folder).failures
    assert any("'rounding'" in f for f in failures)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("far", put("expression")("max(norm(x - y)) + 0")),
        ("far", put("expression")("max(norm(y))")),
        ("far", put("cells")([13, 13])),
        ("far", put("arithmetic")("float32")),
        ("far", put("arithmetic")("mixed")),
        ("kernel", put("expression")(f"sum({KERNEL}*y)/sum({KERNEL})")),  # the network has means
    ],
)
def test_changed_networks_fail(copy: Copy, name: str, change: Change):
    assert not check(copy(name).edit("config", change).folder).verified


@pytest.mark.parametrize(
    "change",
    [
        put("cells")([]),
        put("cells")([0, 4]),
        put("cells")([2**20, 2**20]),
        put("d")(1),
        put("expression")(7),
        put("expression")("max(norm(x - z))"),
        put("arithmetic")("float16"),
        lambda data: data.pop("cells"),
        lambda data: data.update(code="lanes"),
    ],
)
def test_networks_that_make_no_sense_are_refused(copy: Copy, change: Change):
    with pytest.raises(FileFormatError):
        check(copy("far").edit("config", change).folder)


def test_own_cells_without_numbers_of_their_own_are_refused(copy: Copy):
    """257^8 exceed int64: compiled, which needs no memory for them, the network took the cells of others."""

    def describe(data: dict[str, Any]) -> None:
        data.update(expression="max(y[0] + norm(x))", d=8, cells=[257] * 8)

    with pytest.raises(FileFormatError, match="cells of own tokens"):
        check(copy("far").edit("config", describe).folder)


@pytest.mark.parametrize(
    ("name", "tensor", "by"),
    [
        ("far", "edges.0", 0.01),
        ("far", "edges.1", -0.5),
        ("far", "centres.0", 0.01),
        ("far", "centres.0", 1.0),
        ("pool", "centres.3", float("nan")),
        ("mixed", "edges.1", float("inf")),
    ],
)
def test_changed_tables_fail(copy: Copy, name: str, tensor: str, by: float):
    found = check(copy(name).weights(shift(tensor, by)).folder)
    assert not found.verified
    assert any("weights" in f or "radius" in f or "modulus" in f for f in found.failures), found.failures


def test_tables_are_measured_not_believed(copy: Copy):
    """Edges and the recorded radius moved together: the modulus of the tables as they are is what counts."""

    def widen(data: dict[str, Any]) -> None:
        data["constants"]["radius"][0] += 0.05

    saved = copy("far").weights(shift("edges.0", -0.05)).edit("certificate", widen)
    found = check(saved.folder)
    assert not found.verified
    assert not any("radius" in f for f in found.failures)
    assert any("modulus" in f for f in found.failures)
    broken = load(saved.folder)
    assert attack(broken.target, broken.network, seconds=2.0).worst > broken.certificate.total


def test_a_radius_beyond_float64_is_a_failure(copy: Copy):
    """One cell, its centre at an end of a box that is 3.4e308 wide."""

    def move(tensors: dict[str, np.ndarray]) -> None:
        tensors["edges.0"], tensors["centres.0"] = np.zeros(0), np.array([-1.7e308])

    def recorded(data: dict[str, Any]) -> None:
        data.update(box="-1.7e308:1.7e308", latent_dimension=1)
        data["constants"].update(cells=[1], radius=[1.7e308])

    saved = copy("spread").weights(move).edit("config", put("cells")([1])).edit("certificate", recorded)
    found = check(saved.folder)
    assert not found.verified
    assert any("OverflowError" in f for f in found.failures)


def test_a_denominator_that_may_vanish_is_no_proof(copy: Copy):
    source = "max(norm(x - y))/mean(y[0])"
    found = check(
        copy("far").edit("certificate", put("target")(source)).edit("config", put("expression")(source)).folder
    )
    assert found.bound == float("inf")
    assert not found.verified


# ---- roundings


def _network(source: str, d: int, cells: int, arithmetic: str = "mixed") -> Network:
    return Network(parse(source, d), d, (cells,) * d, arithmetic)


ROUNDED = [
    ("mean(exp(-norm2(x - y))*y)", 2, "any", "0:1"),
    ("mean(exp(-norm2(x - y))*y)/mean(exp(-norm2(x - y)))", 1, "any", "-2:2"),
    ("mean(-exp(-9*norm2(x - y))*y**3)/mean(-exp(-9*norm2(x - y)))", 1, "any", "-1:1"),
    ("mean((y - mean(exp(4*y)*y)/mean(exp(4*y)))**2)", 1, "any", "0:1"),
    ("sum_others(abs(x - y))*x", 1, "2..60", "0:1"),
    ("max(x*y) + min(norm(y))", 2, "any", "1:3"),
]


@pytest.mark.parametrize(("source", "d", "n", "box"), ROUNDED)
def test_rounding_bounds_the_network_in_float32(source: str, d: int, n: str, box: str):
    """The same formula run in float32 beside float64, with the bound of float32 and of the rounded result."""
    f, K = target(source, n=n, d=d, box=box), 40
    low, high = (float(side[0]) for side in (f.box.lower, f.box.upper))
    centres = low + (high - low) * (torch.arange(K) + 0.5) / K
    X = low + (high - low) * torch.rand(60, 60, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    X = X.float().double()
    outputs = []
    for dtype in (torch.float32, torch.float64):
        net = CellSumformer(source, d, [K] * d, "float64")
        net.inside = net.outside = dtype
        for family in net.families:
            family.dtype = dtype
        for c in range(d):
            net.edges[c].data = low + (high - low) * torch.arange(1, K, dtype=torch.float64) / K
            net.centres[c].data = centres.float().to(dtype)
        outputs.append(net.requires_grad_(False)(X.to(dtype)).double())
    with np.errstate(all="ignore"):
        radii = np.full(d, (high - low) / K)
        bound = rounding(f, _network(source, d, K, "float32"), radii, 0.0)
    seen = float((outputs[0] - outputs[1]).abs().max())
    assert 0 < seen <= bound
    assert bound <= 2e-3  # of values of about 1


def test_the_rule_for_quotients_is_free_of_the_least_weight():
    """e^(−60|x − y|) falls to 1e-26, which a bound of the sums alone would divide by."""
    source = "mean(exp(-60*abs(x - y))*y)/mean(exp(-60*abs(x - y)))"
    f = target(source)
    with np.errstate(all="ignore"):
        assert rounding(f, _network(source, 1, 100, "float64"), np.array([0.01]), 0.0) <= 1e-12
