"""check of a `CompiledTransformer`: ledger and weights changed together, so that only the proof can object."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tampered import Tampered

import sumformer
from sumformer.certificates.checker import check
from sumformer.theorems.construction import construct

SAMPLES = {
    "gauss": ("sum(exp(-(x - y)**2)*y)/sum(exp(-(x - y)**2))", 1e-1, {"n": 3, "architecture": "transformer"}),
    "product": ("x*mean(y)", 1e-3, {"n": 2, "architecture": "transformer", "options": {"prefer": "parameters"}}),
}


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    root = tmp_path_factory.mktemp("compiled")
    for name, (source, epsilon, options) in SAMPLES.items():
        construct(source, epsilon, **options).save(root / name)
        assert check(root / name).verified
    return root


@pytest.fixture
def copy(originals, tmp_path):
    return lambda name: Tampered(originals / name, tmp_path / name)


def config(folder):
    return json.loads((folder / "config.json").read_text())


def test_outputs_that_are_scaled_with_the_read_out(copy):
    """Program and read-out agree, but they are not S: only |program − S| knows."""
    saved = copy("product")

    def scale(data):
        for f in data["ledger"]["outputs"]:
            f["weights"], f["offset"] = [1.02 * w for w in f["weights"]], 1.02 * f["offset"]

    saved.edit("config", scale).weights(lambda t: t.update({"read_out.weight": 1.02 * t["read_out.weight"]}))
    assert not check(saved.folder).verified


@pytest.mark.parametrize("name", SAMPLES)
def test_a_hidden_unit_that_no_gadget_owns(copy, name):
    saved, prefix = copy(name), "blocks.0.feed_forward."
    hidden = config(saved.folder)["blocks"]["modules"][0]["feed_forward"]["d_hidden"]
    out = config(saved.folder)["ledger"]["attention"]["from"][0]

    def add(t):
        t[prefix + "b_1"] = np.append(t[prefix + "b_1"], 1.0)
        for i, entry in ((1, (hidden, 1)), (2, (out, hidden))):
            place = np.concatenate([t[f"{prefix}place_{i}"], np.array([entry], dtype=np.int32).T], axis=1)
            value = np.append(t[f"{prefix}value_{i}"], 0.5)
            order = np.lexsort(place[::-1])
            t[f"{prefix}place_{i}"], t[f"{prefix}value_{i}"] = np.ascontiguousarray(place[:, order]), value[order]

    def grow(data):
        f = data["blocks"]["modules"][0]["feed_forward"]
        f.update(d_hidden=hidden + 1, nonzero_1=f["nonzero_1"] + 1, nonzero_2=f["nonzero_2"] + 1)

    found = check(saved.weights(add).edit("config", grow).folder)
    assert not found.verified
    assert "outside the ledger" in " ".join(found.failures), found.failures


def add_to_b_2(saved, block, at, value):
    name = f"blocks.{block}.feed_forward.b_2"
    saved.weights(lambda t: t[name].__setitem__(at, t[name][at] + value))


def test_a_constant_beside_the_ledger(copy):
    """b_2 on a coordinate that is read later."""
    saved = copy("gauss")
    ledger = config(saved.folder)["ledger"]
    block = ledger["attention"]["block"] - 1
    at = ledger["attention"]["from"][0]
    assert block >= 0
    add_to_b_2(saved, block, at, 0.3)
    assert not check(saved.folder).verified


def test_a_constant_in_a_later_stage_of_a_saw(copy):
    saved = copy("product")
    ledger = config(saved.folder)["ledger"]
    values = {v["name"]: v for v in ledger["values"]}
    i, g = next((i, g) for i, g in enumerate(ledger["gadgets"]) if g["kind"] == "product" and len(g["stages"]) > 1)
    v = values[g["values"][0]]
    sums = (s for s in values.values() if s["op"] == "sum" and v["name"] in s["of"]["of"])
    at = v["at"] if v["at"] >= 0 else next(sums)["at"]
    later = g["stages"][1][0]

    def record(data):
        constants = data["ledger"]["gadgets"][i]["stages"][1][0]["constants"]
        constants[str(at)] = constants.get(str(at), 0.0) + 10.0

    add_to_b_2(saved.edit("config", record), later["block"], at, 10.0)
    assert not check(saved.folder).verified


def without_units(tensors, forward, prefix, kept):
    """The weights of hidden units `kept` alone."""
    for i, row in (("1", 0), ("2", 1)):
        place, value = prefix + f"place_{i}", prefix + f"value_{i}"
        stay = kept(tensors[place][row])
        tensors[place], tensors[value] = np.ascontiguousarray(tensors[place][:, stay]), tensors[value][stay]
        forward[f"nonzero_{i}"] = int(stay.sum())


def test_what_is_left_out_as_a_square_is_one(tmp_path):
    """exp(−10¹²(x − 0.3)²) left out as a "square" of 2⁻¹⁰ u: charged 2⁻²⁰, and off by 1 at x = 0.3."""
    options = {"n": 2, "architecture": "transformer"}
    construct("mean(y) + exp(-(x - 0.3)**2)", 1e-2, **options).save(tmp_path / "net")
    saved, prefix = Tampered(tmp_path / "net", tmp_path / "forged"), "blocks.0.feed_forward."
    data = config(saved.folder)
    ledger, forward = data["ledger"], data["blocks"]["modules"][0]["feed_forward"]
    spike = next(v for v in ledger["values"] if v["op"] == "function")
    gadget = next(g for g in ledger["gadgets"] if g["kind"] == "function")
    end = gadget["stages"][0][0]["units"][1]
    spike["of"]["weights"] = [2.0**-10]
    spike["expression"] = "exp(-1000000000000*(0.5 + 512*x - 0.3)**2)"
    gadget["kind"], gadget["stages"] = "square", []
    target = sumformer.target("mean(y) + exp(-1000000000000*(x - 0.3)**2)", n=2)
    data["ideal"]["expression"] = target.source

    def leave_out(tensors):
        tensors[prefix + "b_1"][:end] = 0
        tensors[prefix + "b_2"][spike["at"]] = 0
        without_units(tensors, forward, prefix, lambda rows: rows >= end)

    saved.weights(leave_out).edit("config", lambda old: old.update(data))
    saved.edit("certificate", lambda c: c.update(target=target.source))
    made, X = sumformer.load(saved.folder), torch.tensor([[[0.3], [0.7]]], dtype=torch.float64)
    assert float((made.network(X) - target(X)).abs().max()) > 0.9
    found = check(saved.folder)
    assert not found.verified
    assert "left out as a square, which it is not" in " ".join(found.failures)


def test_a_name_is_no_key_of_the_stream(copy):
    saved = copy("product")

    def rename(data):
        data["ledger"]["values"][-1]["name"] = "\0u0"

    with pytest.raises(sumformer.errors.FileFormatError, match="not a new name"):
        check(saved.edit("config", rename).folder)
