"""Ledgers that hide a write: a value named twice, a constant in a saw's workspace; drifts of a head; bounds of none."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tampered import Tampered

from sumformer.certificates.checker import check
from sumformer.certificates.checker.compiled.files import read_compiled
from sumformer.certificates.checker.compiled.head import read_head
from sumformer.errors import FileFormatError
from sumformer.targets.domain import Tokens
from sumformer.theorems.construction import construct, load

X = torch.tensor([[[0.9], [0.2]]], dtype=torch.float64)


def error(folder):
    made = load(folder)
    return float((made.target(X) - made.network(X)).abs().max())


def test_a_function_that_is_written_twice(tmp_path):
    """2 exp(x) in the weights, and exp named twice in the ledger: what is compared is 2 exp, what is noted exp."""
    construct("mean(y) + exp(x)", 1e-2, n=2, architecture="transformer").save(tmp_path / "net")
    forged = Tampered(tmp_path / "net", tmp_path / "forged")
    ledger = json.loads((forged.folder / "config.json").read_text())["ledger"]
    place = next(i for i, g in enumerate(ledger["gadgets"]) if g["kind"] == "function")
    entry = ledger["gadgets"][place]["stages"][0][0]
    prefix, (first, end) = f"blocks.{entry['block']}.feed_forward.", entry["units"]

    def twice(config):
        gadget = config["ledger"]["gadgets"][place]
        gadget["values"] *= 2
        stage = gadget["stages"][0][0]
        stage["constants"] = {c: 2 * v for c, v in stage["constants"].items()}

    def double(tensors):
        units = tensors[prefix + "place_2"][1]
        tensors[prefix + "value_2"][(units >= first) & (units < end)] *= 2
        for c, v in entry["constants"].items():
            tensors[prefix + "b_2"][int(c)] += v

    forged.edit("config", twice).weights(double)
    assert error(forged.folder) > 1
    found = check(forged.folder)
    assert not found.verified
    assert "twice" in " ".join(found.failures)


def test_a_constant_in_the_workspace_of_a_saw(tmp_path):
    """A sum of nothing, at the workspace, by one unit R(0 + 100): it has no content, but it is written."""
    options = {"prefer": "parameters"}
    construct("x*mean(y)", 1e-3, n=2, architecture="transformer", options=options).save(tmp_path / "net")
    forged = Tampered(tmp_path / "net", tmp_path / "forged")
    config = json.loads((forged.folder / "config.json").read_text())
    values, gadgets = config["ledger"]["values"], config["ledger"]["gadgets"]
    saw = next(g for g in gadgets if g["kind"] == "product" and len(g["stages"]) > 1)
    at = next(v["at"] for v in values if v["name"] == saw["values"][0])
    entry = saw["stages"][0][0]
    block, space = entry["block"], next(int(c) for c in entry["writes"] if int(c) != at)
    hidden, prefix = config["blocks"]["modules"][block]["feed_forward"]["d_hidden"], f"blocks.{block}.feed_forward."

    def name_it(config):
        value = {"name": "nothing", "op": "sum", "of": {"of": [], "weights": [], "offset": 0.0}, "at": space}
        value |= {"from": len(config["blocks"]["modules"]), "error": 0.0, "range": [0.0, 0.0]}
        config["ledger"]["values"].append(value)
        write = {"block": block, "units": [hidden, hidden + 1], "writes": {str(space): 1}, "constants": {}}
        gadget = {"kind": "identity", "values": ["nothing"], "error": [0.0, 0.0], "stages": [[write]]}
        config["ledger"]["gadgets"].append(gadget)
        layer = config["blocks"]["modules"][block]["feed_forward"]
        layer.update(d_hidden=hidden + 1, nonzero_2=layer["nonzero_2"] + 1)

    def write_it(tensors):
        tensors[prefix + "b_1"] = np.append(tensors[prefix + "b_1"], 100.0)
        more = np.array([[space], [hidden]], dtype=np.int32)
        place = np.concatenate([tensors[prefix + "place_2"], more], 1)
        value, order = np.append(tensors[prefix + "value_2"], 1.0), np.lexsort(place[::-1])
        tensors[prefix + "place_2"] = np.ascontiguousarray(place[:, order])
        tensors[prefix + "value_2"] = value[order]

    forged.edit("config", name_it).weights(write_it)
    assert error(forged.folder) > 1
    found = check(forged.folder)
    assert not found.verified
    assert "overwritten" in " ".join(found.failures)


def test_drifts_of_the_head_are_factors(tmp_path):
    """W_V and W_O times 1.4: the mean is off by 1.96 − 1, not by 0.8."""
    construct("x - mean(y)", 0.1, n=2, architecture="transformer").save(tmp_path / "net")
    forged = Tampered(tmp_path / "net", tmp_path / "forged")

    def scale(tensors):
        for name in tensors:
            if name.endswith(("W_V.weight", "W_O.weight")):
                tensors[name] *= 1.4

    forged.weights(scale)
    assert read_head(read_compiled(forged.folder), Tokens(2, 2)).relative >= 0.96


def test_a_bound_that_is_not_sought_is_none(tmp_path):
    """The claim is below the remainder alone: nothing is said of the rest."""
    construct("exp(x*mean(y))", 1e-2, n=2, route="symmetric").save(tmp_path / "net")
    forged = Tampered(tmp_path / "net", tmp_path / "forged").weights(lambda t: t["coefficients"].__imul__(10))

    def claim_less(certificate):
        for term in certificate["terms"]:
            term["bound"] *= 1e-4
        certificate["total"] = sum(term["bound"] for term in certificate["terms"])

    found = check(forged.edit("certificate", claim_less).folder)
    assert not found.verified
    assert found.bound >= error(forged.folder) > 1


def test_a_network_of_another_target_has_no_bound(tmp_path):
    construct("x - mean(y)", 0.1, n=2).save(tmp_path / "net")
    forged = Tampered(tmp_path / "net", tmp_path / "forged")
    forged.edit("config", lambda c: c.update(expression="(x - mean(y)) + 1/100"))
    assert check(forged.folder).bound == float("inf")


def test_a_ledger_holds_no_module(tmp_path):
    """`load` would build it, and fail or not, where the checker reads a remark."""
    construct("mean(y) + x", 1e-2, n=2, architecture="transformer").save(tmp_path / "net")
    forged = Tampered(tmp_path / "net", tmp_path / "forged")
    forged.edit("config", lambda c: c["ledger"]["values"][0].update(because={"type": "Zero"}))
    with pytest.raises(FileFormatError, match="the ledger describes a module"):
        check(forged.folder)
