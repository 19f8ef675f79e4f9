"""check of a `CompiledTransformer`: no changed ledger, network or claim is taken for the one that was saved."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file
from tampered import Change, Copy, Sample, Samples, Tampered, accepted, put

from sumformer.certificates.checker import check
from sumformer.theorems.construction import construct

GAUSS = "sum(exp(-(x - y)**2)*y)/sum(exp(-(x - y)**2))"
SAMPLES: dict[str, Sample] = {
    "gauss": (GAUSS, 1e-1, {"n": 3, "d": 1, "architecture": "transformer"}),
    "others": ("x*mean_others(exp(x*y/3)) + x/3", 1e-2, {"n": 3, "box": "-0.1:0.8", "architecture": "linformer"}),
}


def _of(kind: str, then: Callable[[Any], None]) -> Change:
    """On the first gadget of this kind."""
    return lambda data: then(next(g for g in data["ledger"]["gadgets"] if g["kind"] == kind))


def _value(op: str, then: Callable[[Any], None]) -> Change:
    return lambda data: then(next(v for v in data["ledger"]["values"] if v["op"] == op))


def _bump(*path: Any, by: float = 1.0) -> Callable[[Any], None]:
    return put(*path)(lambda old: old + by)


CONFIG: dict[str, Change] = {
    "centre": put("ledger", "centre", 0)("1/3"),
    "radius": put("ledger", "radius", 0)("1/3"),
    "tokens": put("ledger", "tokens")(7),
    "outputs weight": put("ledger", "outputs", 0, "weights", 0)(lambda w: w + 1e-9),
    "outputs offset": put("ledger", "outputs", 0, "offset")(lambda w: w + 1e-9),
    "outputs of": put("ledger", "outputs", 0, "of")(["u0#0"]),
    "attention block": put("ledger", "attention", "block")(lambda k: k - 1),
    "attention from": put("ledger", "attention", "from", 0)(lambda c: c + 1),
    "attention to": put("ledger", "attention", "to", 0)(lambda c: c + 1),
    "attention means": put("ledger", "attention", "means")(lambda m: m[::-1]),
    "expression": _value("function", put("expression")(lambda e: f"1.001*({e})")),
    "function of": _value("function", _bump("of", "weights", 0, by=1e-6)),
    "product of": _value("product", _bump("of", 0, "weights", 0, by=1e-6)),
    "product offset": _value("product", _bump("of", 1, "offset", by=1e-3)),
    "sum weight": _value("sum", _bump("of", "weights", 0, by=0.1)),
    "sum offset": _value("sum", _bump("of", "offset", by=0.1)),
    "input": _value("input", put("at")(2)),
    "product at": _value("product", put("at")(lambda c: c + 1 if c >= 0 else 1)),
    "function from": _value("function", _bump("from")),
    "mean of": _value("mean", put("of")("u0#0")),
    "name": _value("mean", put("name")("u0#0")),
    "op": _value("product", put("op")("sum")),
    "kind": _of("product", put("kind")("square")),
    "clear": _of("clear", put("kind")("identity")),
    "gadget values": _of("function", put("values", 0)("u0#0")),
    "product range": _of("product", _bump("ranges", 0, 1)),
    "units": _of("function", put("stages", 0, 0, "units", 1)(lambda k: k - 1)),
    "block": _of("function", _bump("stages", 0, 0, "block")),
    "writes": _of("function", put("stages", 0, 0, "writes")({"5": "u0#0"})),
    "constants": _of("function", put("stages", 0, 0, "constants")({})),
    "gadget left out": put("ledger", "gadgets")(lambda g: g[1:]),
    "gadget twice": put("ledger", "gadgets")(lambda g: [*g, g[0]]),
    "ideal": put("ideal", "expression")("mean(y)"),
    "ideal own": put("ideal", "reductions", 0, "components", 0, 0, "polynomial", 0, 1)("1/3"),
    "block type": put("blocks", "modules", 0, "type")("SubLayers"),
    "dropout": put("blocks", "modules", 0, "dropout")(0.5),
    "second attention": put("blocks", "modules", 0, "attention")({"type": "Identity"}),
    "normaliser": lambda d: d["blocks"]["modules"][d["ledger"]["attention"]["block"]]["attention"].update(
        normaliser={"type": "Hardmax"}
    ),
    "arithmetic": put("arithmetic")("float32"),
    "ideal that is none": put("ideal")(-1),
    "attention that is none": lambda d: d["blocks"]["modules"][d["ledger"]["attention"]["block"]].update(attention=3),
}
CERTIFICATE: dict[str, Change] = {
    "target": put("target")("mean(y)"),
    "box": put("box")("0:2"),
    "route": put("route")("symmetric"),
    "architecture": put("architecture")("linformer"),
    "norm": put("norm")("d_2"),
    "epsilon": put("epsilon")(1e-6),
    "latent": put("latent_dimension")(1),
    "total": put("total")(lambda t: t / 2),
    "term": lambda d: [t.update(bound=t["bound"] / 4) for t in d["terms"]] and d.update(total=d["total"] / 4),
    "term kind": put("terms", 0, "kind")("assumed"),
    "assumptions": put("assumptions")([]),
    "blocks": put("constants", "blocks")(1),
    "rho": put("constants", "ideal", "kernels", 0, "ellipses", 0, "rho")(1.01),
    "no ideal": lambda d: d["constants"].pop("ideal"),
}


@pytest.mark.parametrize("what", CONFIG)
def test_a_changed_configuration_fails(copy: Copy, what: str):
    assert not accepted(copy("gauss").edit("config", CONFIG[what]).folder)


@pytest.mark.parametrize("what", CERTIFICATE)
def test_a_changed_certificate_fails(copy: Copy, what: str):
    assert not accepted(copy("gauss").edit("certificate", CERTIFICATE[what]).folder)


def test_weights_that_know_n_are_for_that_n(copy: Copy):
    assert not accepted(copy("others").edit("certificate", put("tokens")("4")).folder)
    assert accepted(copy("gauss").edit("certificate", put("tokens")("4")).folder)  # means and ratios: free of n


def test_hashes_count(copy: Copy):
    folder = copy("gauss").folder
    path = folder / "config.json"
    path.write_text(path.read_text() + " ")
    assert any("hash" in failure for failure in check(folder).failures)


def test_the_network_of_another_target_is_not_taken_for_this_one(samples: Samples, tmp_path: Path):
    """Certificate and Sumformer of f, everything else of a near-by g: the programs differ."""
    construct(GAUSS.replace("-(x", "-1.2*(x"), 1e-1, n=3, architecture="transformer").save(tmp_path / "f")
    own, strange = tmp_path / "f", samples("gauss")
    forged = Tampered(strange, tmp_path / "forged")
    mine = json.loads((own / "config.json").read_text())["ideal"]
    forged.weights(
        lambda d: d.update({k: v for k, v in load_file(own / "model.safetensors").items() if k.startswith("ideal")})
    )
    (forged.folder / "certificate.json").write_text((own / "certificate.json").read_text())
    there = len(json.loads((strange / "config.json").read_text())["blocks"]["modules"])
    forged.edit("config", lambda d: d.update(ideal=mine)).edit("certificate", put("constants", "blocks")(there))
    found = check(forged.folder)
    assert not found.verified
    assert found.bound > found.epsilon
