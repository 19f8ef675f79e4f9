"""check of a `GridSumformer`, plain and with positions: honest files verify, changed ones do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tampered import Change, Copy, Sample, Samples, Tampered, halve, put, shift

from sumformer.certificates.attack import attack
from sumformer.certificates.checker import check
from sumformer.certificates.checker.grid.modulus import Modulus
from sumformer.certificates.checker.grid.rounding import rounding
from sumformer.certificates.checker.grid.tables import Network
from sumformer.errors import FileFormatError
from sumformer.targets import parse, target
from sumformer.theorems.construction import construct, load

GAUSSIAN = "sum(exp(-norm2(x - y))*y)/sum(exp(-norm2(x - y)))"
OPTIONS = {"route": "grid"}
SAMPLES: dict[str, Sample] = {
    "mean": ("norm(x - mean(y))", 0.05, {"n": 3, "d": 1}),
    "mean32": ("norm(x - mean(y))", 0.1, {"n": 4, "d": 2, "dtype": "float32"}),
    "max": ("max(abs(x - y))", 0.05, {"n": 8, "d": 1}),
    "mixed": ("max(norm(x - y))", 0.1, {"n": 3, "d": 2, "dtype": "mixed"}),
    "range": ("mean(abs(x - y))", 0.1, {"n": "..5", "d": 1}),
    "large": ("sin(sum(abs(x - y))/8)", 0.2, {"n": 100, "d": 1}),
    "nested": ("max(abs(y - mean(y)))", 0.2, {"n": 4, "d": 1, "box": "-1:2"}),
    "smooth": (GAUSSIAN, 0.2, {"n": 3, "d": 1}),
    "far": (GAUSSIAN, 0.25, {"n": 3, "d": 1, "box": "5:6"}),
    "wide": (GAUSSIAN, 0.5, {"n": 2, "d": 1, "box": "-1:2"}),
    "many": (GAUSSIAN, 0.5, {"n": 40, "d": 1, "box": "2:3"}),
    "dot": ("sum(exp(dot(x, y))*y)/sum(exp(dot(x, y)))", 0.4, {"n": 3, "d": 1, "box": "2:2.5"}),
    "vector": ("mean_others(y*exp(x[0]*y[0]))/mean_others(exp(x[0]*y[0]))", 0.5, {"n": 3, "d": 2, "box": "1:1.5"}),
    "positions": ("max(abs(x - y)*(1 + i - j)/4)", 0.3, {"n": 3, "d": 1, "positions": True}),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_honest_files_verify(samples: Samples, name: str):
    found = check(samples(name))
    assert found.verified, found.failures
    assert found.bound <= found.claimed <= found.epsilon


def test_a_positioned_sum_verifies(tmp_path: Path):
    """Route sums behind positions: the checker of the wrapped network, over 𝒳 × [1, n]."""
    construct("mean(cos(x*y)*i + j)", 1e-2, n=3, d=1, positions=True).save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures
    saved = Tampered(tmp_path, tmp_path / "copy").weights(lambda tensors: next(iter(tensors.values())).fill(0.0))
    assert not check(saved.folder).verified


CERTIFICATE: list[tuple[str, str, Change]] = [
    ("max", "target", put("target")("max(abs(x - 2*y))")),
    ("max", "box", put("box")("0:2")),
    ("max", "tokens", put("tokens")("9")),
    ("mixed", "tokens", put("tokens")("..3")),  # a syndrome is for exactly n
    ("max", "arithmetic", put("arithmetic")("float32")),
    ("max", "route", put("route")("sums")),
    ("max", "norm", put("norm")("d_1")),
    ("max", "latent_dimension", put("latent_dimension")(lambda k: k + 1)),
    ("max", "epsilon", put("epsilon")(halve)),
    ("max", "total", put("total")(halve)),
    ("max", "assumptions", put("assumptions")([])),
    ("max", "terms", put("terms", 0, "kind")("proved")),
    ("max", "terms", put("terms", 0, "bound")(halve)),
    ("max", "terms", put("terms", 1, "bound")(0.0)),
    ("max", "cells", put("constants", "cells")([11])),
    ("max", "code", put("constants", "code")("integer")),
    ("max", "lipschitz", put("constants", "lipschitz")(halve)),
    ("max", "lipschitz", put("constants", "lipschitz")(lambda v: 2 * v)),
    ("max", "lipschitz", put("constants", "lipschitz")("1")),
    ("max", "lipschitz_attained", put("constants", "lipschitz_attained")(9.0)),
    ("max", "ratio", put("constants", "cell_radius_over_half_side")(halve)),
    ("max", "positions", put("constants", "lipschitz")(None)),
    ("positions", "positions", put("constants", "positions")(False)),
    ("positions", "box", put("box")("0:1,1:4")),
    ("positions", "target", put("target")("max(abs(x[0] - y[0])*(1 + x[1] + y[1])/4)")),
]


@pytest.mark.parametrize(("name", "field", "change"), CERTIFICATE, ids=lambda v: v if isinstance(v, str) else "")
def test_changed_certificates_fail(copy: Copy, name: str, field: str, change: Change):
    found = check(copy(name).edit("certificate", change).folder)
    assert not found.verified
    assert found.failures


def test_a_smaller_claim_names_the_term(copy: Copy):
    """Constant, term and total all say half: consistent, and false."""

    def change(data: dict[str, Any]) -> None:
        data["constants"]["lipschitz"] /= 2
        data["constants"]["lipschitz_attained"] /= 2
        data["total"] -= data["terms"][0]["bound"] / 2
        data["terms"][0]["bound"] /= 2

    failures = check(copy("nested").edit("certificate", change).folder).failures
    assert any("'modulus of continuity at the cells'" in f for f in failures)


@pytest.mark.parametrize("name", ["smooth", "far", "wide", "dot", "vector"])
def test_a_modulus_below_the_sampled_one_is_refused(copy: Copy, name: str):
    """Constant, term and total all say 10 % less than slopes that are attained: consistent, and false."""
    saved = copy(name)
    f = load(saved.folder).target
    low, half = (torch.tensor([float(v) for v in side]) for side in (f.box.lower, f.box.radius))
    X = torch.rand(20_000, f.tokens.maximum, f.d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    X[::2] = X[::2].round()
    X = (low + 2 * half * X).requires_grad_()
    slopes = [torch.autograd.grad(v.sum(), X, retain_graph=True)[0] for v in f(X)[:, 0].unbind(-1)]
    attained = max(float((half * g[:, 1:].abs()).sum((1, 2)).max()) for g in slopes)

    def change(data: dict[str, Any]) -> None:
        constants, term = data["constants"], data["terms"][0]
        assert attained <= constants["lipschitz"]
        constants["lipschitz"] = constants["lipschitz_attained"] = 0.9 * attained
        lower = constants["lipschitz"] * constants["cell_radius_over_half_side"]
        data["total"], term["bound"] = data["total"] - term["bound"] + lower, lower

    failures = check(saved.edit("certificate", change).folder).failures
    assert len(failures) == 2  # the term and the total, nothing about the form
    assert any("'modulus of continuity at the cells'" in f for f in failures)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("max", put("n")(7)),
        ("max", put("expression")("max(abs(x - y)) + 0")),
        ("max", put("expression")("max(abs(y))")),
        ("max", put("code")("syndrome")),
        ("max", put("code")("digits")),
        ("max", put("cells")([13])),
        ("range", put("code")("syndrome")),
        ("positions", put("network", "n")(4)),
        ("positions", put("network", "expression")("max(abs(x[0] - y[0]))")),
    ],
)
def test_changed_networks_fail(copy: Copy, name: str, change: Change):
    assert not check(copy(name).edit("config", change).folder).verified


def test_tokens_are_those_that_the_target_allows(tmp_path: Path):
    """Of means over others the first number is 2, and nothing else may be written."""
    construct("mean_others(abs(x - y))", 0.2, n="..4", route="grid").save(tmp_path)
    assert check(tmp_path).verified
    for text in ("..4", "1..4", "02..4"):
        saved = Tampered(tmp_path, tmp_path / "copy").edit("certificate", put("tokens")(text))
        with pytest.raises(FileFormatError, match=r"tokens: the target is defined for 2\.\.4"):
            check(saved.folder)


@pytest.mark.parametrize("change", [put("cells")([]), put("n")(0), put("d")(2), lambda data: data.pop("code")])
def test_networks_that_make_no_sense_are_refused(copy: Copy, change: Change):
    with pytest.raises(FileFormatError):
        check(copy("max").edit("config", change).folder)


@pytest.mark.parametrize(
    ("name", "tensor", "by"),
    [
        ("max", "edges.0", 0.01),
        ("max", "edges.0", -0.5),
        ("max", "centres.0", 0.01),
        ("max", "centres.0", 1.0),
        ("max", "centres.0", float("nan")),
        ("mean32", "edges.1", -0.02),
        ("positions", "network.centres.1", -0.5),
        ("positions", "network.edges.1", 1.0),
    ],
)
def test_changed_tables_fail(copy: Copy, name: str, tensor: str, by: float):
    found = check(copy(name).weights(shift(tensor, by)).folder)
    assert not found.verified
    assert any("weights" in f or "cell_radius" in f or "modulus" in f for f in found.failures), found.failures


def test_a_corrupted_table_with_a_counterexample_is_not_verified(copy: Copy):
    def change(tensors: dict[str, np.ndarray]) -> None:
        tensors["centres.0"][:] = tensors["centres.0"][::-1]

    saved = copy("mean").weights(change)
    broken = load(saved.folder)
    assert attack(broken.target, broken.network, seconds=1.0).worst > broken.certificate.total
    assert not check(saved.folder).verified


# ---- the parts


@pytest.mark.parametrize(
    ("source", "box", "d", "n"),
    [
        ("sum(tanh(x*y) + abs(y))", "-1:1", 1, 3),
        ("max(norm(x - y)*sigmoid(total(y)))", "-1:1", 2, 3),
        ("mean(sin(3*y))**2/(2 + mean(cos(y)))", "0:2", 1, 4),
        ("min(min(x, y)*exp(-mean(y)))", "0:1", 1, 14),
        ("sum_others(log(1 + norm2(y)))*sqrt(1 + mean_others(y)**2)", "-1:0.5", 1, 13),
    ],
)
def test_moduli_hold_for_random_moves(source: str, box: str, d: int, n: int):
    """Others moved by at most r never move f by more; and the bound is within a factor 2 of an attained change."""
    f = target(source, n=n, d=d, box=box)
    radii = np.full(d, 1e-3)
    search = Modulus(f.expression, f.box, n, radii)
    with np.errstate(all="ignore"):
        bound = search.bound(0.0) if n > 12 else min(search.bound(0.0), search.bound(1e9))
    random = torch.Generator().manual_seed(0)
    low, high = float(f.box.lower[0]), float(f.box.upper[0])
    X = low + 1e-3 + (high - low - 2e-3) * torch.rand(4000, n, d, generator=random, dtype=torch.float64)
    X[::2] = X[::2].clamp(max=low + 1e-3) if n % 2 else X[::2].clamp(min=high - 1e-3)
    signs = torch.randint(2, (4000, n, d), generator=random) * 2.0 - 1
    signs[::4] = 1.0
    signs[:, 0] = 0.0
    change = float((f(X + 1e-3 * signs)[:, 0] - f(X)[:, 0]).abs().max())
    assert change <= bound
    assert bound <= 3 * change


def test_rounding_bounds_the_float32_formula():
    source = "sum(exp(x*y))/(1 + mean(y)**2)"
    f = target(source, n=5, d=1)
    X = torch.rand(2000, 5, 1, generator=torch.Generator().manual_seed(0))
    seen = float((f(X).double() - f(X.double())).abs().max())
    with np.errstate(all="ignore"):
        bound = rounding(f, "float32")
    assert seen <= bound <= 1e-4


@pytest.mark.parametrize(
    ("code", "cells", "n", "dimension"),
    [
        ("lanes", (10,), 3, 1),  # 26 digits of 2 bits
        ("lanes", (27,), 3, 2),
        ("lanes n+1", (34,), 2, 2),  # 3^33 ≤ 2^53 < 3^34
        ("integer", (1000,), 7, 1),
        ("syndrome", (100, 100), 8, 7),
        ("syndrome", (2**13, 2**13), 8, None),  # n·q² ≥ 2^53
        ("lane", (10,), 3, None),
        ("lanes n+2", (10,), 3, None),
    ],
)
def test_codes_that_are_exact(code: str, cells: tuple[int, ...], n: int, dimension: int | None):
    net = Network(parse("sum(y)", len(cells)), len(cells), n, cells, code, "float64")
    assert net.latent_dimension == dimension


def test_a_denominator_that_may_vanish_is_no_proof(copy: Copy):
    change = put("target")("max(abs(x - y))/mean(y)"), put("expression")("max(abs(x - y))/mean(y)")
    found = check(copy("max").edit("certificate", change[0]).edit("config", change[1]).folder)
    assert found.bound == float("inf")
    assert not found.verified
