"""Numbers that overflow where no rule looked: 0 · ∞ is NaN, and no bound holds. Cells that were not those compared."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from tampered import Tampered, sign

import sumformer
from sumformer.certificates.checker import check
from sumformer.certificates.checker.compiled.stream import Stream
from sumformer.errors import FileFormatError
from sumformer.nn.patterns import Window
from sumformer.theorems.construction import construct


def made(tmp_path, source, epsilon, **options):
    construct(source, epsilon, **options).save(tmp_path / "net")
    assert check(tmp_path / "net").verified
    return Tampered(tmp_path / "net", tmp_path / "forged")


def refused(saved, why):
    found = check(saved.folder)
    assert not found.verified
    assert why in " ".join(found.failures), found.failures


def widen(saved, hidden, b_1, entry_1, entry_2):
    """One more coordinate, and a hidden unit of block 0 that reads `entry_1` and writes `entry_2` there, if given."""
    prefix, data = "blocks.0.feed_forward.", json.loads((saved.folder / "config.json").read_text())
    width, unit = data["read_in"]["out_features"], data["blocks"]["modules"][0]["feed_forward"]["d_hidden"]

    def pad(v, axis):
        return np.ascontiguousarray(np.concatenate([v, np.zeros_like(np.take(v, [0], axis))], axis))

    def weights(t):
        for key in [key for key in t if not key.startswith("ideal.")]:
            if key.endswith(("b_2", "W_O.weight")) or key in ("read_in.bias", "read_in.weight"):
                t[key] = pad(t[key], 0)
            if key == "read_out.weight" or key.endswith(("W_Q.weight", "W_K.weight", "W_V.weight")):
                t[key] = pad(t[key], 1)
        t[prefix + "b_1"] = np.append(t[prefix + "b_1"], b_1)
        for i, entry in ((1, entry_1), (2, entry_2)):
            if entry is not None:
                row, column, value = entry(unit, width)
                place = np.array([[row], [column]], dtype=np.int32)
                t[f"{prefix}place_{i}"] = np.ascontiguousarray(np.concatenate([t[f"{prefix}place_{i}"], place], 1))
                t[f"{prefix}value_{i}"] = np.append(t[f"{prefix}value_{i}"], value)

    def config(c):
        c["read_in"]["out_features"] = c["read_out"]["in_features"] = width + 1
        for block in c["blocks"]["modules"]:
            block["feed_forward"]["d_model"] = width + 1
            if block["attention"]["type"] != "Zero":
                block["attention"]["d_model"] = width + 1
        forward = c["blocks"]["modules"][0]["feed_forward"]
        forward.update(d_hidden=unit + 1, nonzero_1=forward["nonzero_1"] + 1)
        forward["nonzero_2"] += entry_2 is not None
        hidden(c, unit, width)

    return saved.weights(weights).edit("config", config)


def test_a_workspace_that_nothing_reads(tmp_path):
    options = {"n": 3, "architecture": "transformer", "route": "grid", "options": {"activation": "relu"}}
    saved = made(tmp_path, "abs(x - mean(y))", 0.4, **options)
    write = (lambda unit, _: (unit, 0, 1e308)), (lambda unit, width: (width, unit, 1.0))
    refused(widen(saved, lambda *_: None, 1.7e308, *write), "that no ramp reads")


def test_a_ramp_that_overflows(tmp_path):
    options = {"n": 3, "architecture": "transformer", "route": "grid", "options": {"activation": "relu"}}
    saved = made(tmp_path, "abs(x - mean(y))", 0.4, **options)
    saved.weights(lambda t: t["blocks.0.feed_forward.b_1"].__setitem__(0, 1.7e308))
    refused(saved, "may overflow")


def test_a_hidden_unit_that_writes_nothing(tmp_path, monkeypatch):
    """Only the dense product of an exported network meets it."""
    options = {"n": 2, "architecture": "transformer", "options": {"prefer": "parameters"}}
    saved = made(tmp_path, "x*mean(y)", 1e-3, **options)

    def entered(c, unit, width):
        u = next(v for v in c["ledger"]["values"] if v["op"] == "input")["name"]
        of = {"of": [u], "weights": [1e140], "offset": 0.0}
        value = {"name": "zz", "op": "function", "of": of, "expression": "0*x", "at": width, "error": 0.0}
        c["ledger"]["values"].append({**value, "from": len(c["blocks"]["modules"]), "range": [0.0, 0.0]})
        stage = {"block": 0, "units": [unit, unit + 1], "writes": [width], "constants": {}}
        c["ledger"]["gadgets"].append({"kind": "function", "values": ["zz"], "stages": [[stage]]})

    saved = widen(saved, entered, 1.7976931348623157e308, lambda unit, _: (unit, 1, 1e140), None)
    refused(saved, "numbers beyond 1e+90")
    monkeypatch.setattr(Stream, "_moderate", lambda stream: None)
    refused(saved, "a hidden unit may overflow")


def test_a_product_of_weight_0(tmp_path):
    saved = made(tmp_path, "x*mean(y)**2", 1e-2, n=3, route="symmetric", dtype="float32")

    def deepen(c):
        products, depth = c["products"], [0]
        for parent, _ in products:
            depth.append(depth[parent] + 1)
        while depth[-1] < 140:
            products.append([len(products), c["features"].index([1])])
            depth.append(depth[-1] + 1)
        c["terms"].append([0, len(products)])

    zero = lambda t: t.update(coefficients=np.pad(t["coefficients"], ((0, 1), (0, 0))))  # noqa: E731
    saved.weights(zero).edit("config", deepen)
    saved.edit("certificate", lambda c: c["constants"].update(terms=c["constants"]["terms"] + 1))
    assert bool(sumformer.load(saved.folder).network(torch.ones(1, 3, 1)).isnan().all())
    refused(saved, "inf found")


def test_a_unit_of_a_cut_that_writes_nothing(tmp_path):
    saved = made(tmp_path, "x+mean(y)", 0.4, architecture="deep-transformer", n=2)

    def overflow(t):
        last = max((key for key in t if key.endswith("W_1")), key=lambda key: int(key.split(".")[1]))
        assert not t[last.replace("W_1", "W_2")][0, :, 2].any()
        t[last][0, 2], t[last.replace("W_1", "b_1")][0, 2] = 2.0**1010, 0.0

    refused(saved.weights(overflow), "a unit may overflow")


@pytest.mark.parametrize("w", [2**63, 2**31])
def test_a_window_beyond_torch(tmp_path, w):
    saved = made(tmp_path, "mean(y)", 0.4, architecture="sparse-transformer", pattern=Window(w=1), n=2)

    def change(data):
        if isinstance(data, dict) and data.get("type") == "Window":
            data["w"] = w
        for part in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
            change(part)

    with pytest.raises(FileFormatError, match="a pattern's arguments"):
        check(saved.edit("config", change).edit("certificate", change).folder)


def test_more_cells_than_int64_counts(tmp_path: Path) -> None:
    """N(X)_i = [x_i ≥ 3/5] beside f = 0 is 12 away in d_1; with 5³⁰ lists of cells it was taken for 4."""
    q, n, ramp = 5, 30, 2.0**-40
    construct("x+mean(y)", 0.4, architecture="deep-transformer", n=2).save(tmp_path / "net")  # a template
    config, certificate = (json.loads((tmp_path / "net" / f"{k}.json").read_text()) for k in ("config", "certificate"))

    def stack(layers, units):
        return {"type": "ReluStack", "d_model": 2, "d_hidden": units, "layers": layers, "fused": False}

    config["n"], config["layers"]["modules"] = n, [stack(q, 3), stack(1, 2), stack(1, 2)]
    config["embedding"].update(d_in=1, d_model=2)
    config["head"].update(d_model=2, d_out=1)
    W1, b1, W2 = np.zeros((q, 3, 2)), np.zeros((q, 3)), np.zeros((q, 2, 3))
    for layer, k in enumerate(reversed(range(q))):
        W1[layer, :, 0], b1[layer] = 1, [-k, -(k + 1 - ramp), -(k + 1)]
        W2[layer, 0] = [-1, 1 / ramp, 1 - 1 / ramp]
    tensors = {
        "embedding.map.weight": np.array([[5.0], [0]]),
        "embedding.map.bias": np.zeros(2),
        "head.map.weight": np.array([[0.0, 1]]),
        "head.map.bias": np.zeros(1),
        "layers.0.W_1": W1,
        "layers.0.b_1": b1,
        "layers.0.W_2": W2,
        "layers.1.W_1": np.array([[[1.0, 0], [1, 0]]]),
        "layers.1.b_1": np.array([[-2.0, -3]]),
        "layers.1.W_2": np.array([[[0.0, 0], [1, -1]]]),
        "layers.2.W_1": np.array([[[0.0, -1], [0, 1]]]),
        "layers.2.b_1": np.array([[0.0, -1]]),
        "layers.2.W_2": np.array([[[0.0, 0], [1, -1]]]),
    }
    steps = ("quantise", q, "d/δ + d", q + 1), ("contextual mapping", 0, "δ^{-d} + 1", q + 1)
    steps = (*steps, ("value mapping", 1, "1 + d + n·C(δ^{-d}, n)", 2))
    certificate.update(target="x - x", d=1, tokens=str(n), latent_dimension=2, norm="d_1", total=4.1, epsilon=4.2)
    recorded = {"n": n, "cells": q, "parts": 1, "p": 1, "ramp": str(Fraction(ramp)), "scale": 0, "read_out_layers": 1}
    recorded |= dict.fromkeys(("temperature", "pattern", "places"))
    names = ("step", "built", "formula", "count")
    certificate["constants"].update(recorded, layers=[dict(zip(names, step, strict=True)) for step in steps])
    kinds = ("cells", "enclosed", 0.05), ("tokens in equal cells", "enclosed", 4.0), ("ramps", "proved", 0.05)
    certificate["terms"] = [{"name": name, "kind": kind, "bound": bound} for name, kind, bound in kinds]
    folder = tmp_path / "forged"
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "certificate.json").write_text(json.dumps(certificate))
    found = check(sign(folder))
    assert not found.verified
    assert found.bound == pytest.approx(12, rel=1e-6)
