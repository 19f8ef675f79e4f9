"""Numbers near the ends of float64: no error is lost to underflow, or divided by what overflows."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tampered import Tampered

from sumformer.certificates.checker import check
from sumformer.targets.target import target
from sumformer.theorems.construction import construct, load

BIG, HALF, TINY, TINIER = "1" + "0" * 200, "1" + "0" * 156, "0." + "0" * 311 + "1", "0." + "0" * 329 + "1"
ROOT, LEAST = "1" + "0" * 165, "0." + "0" * 319 + "1"
OTHERS = {  # what f has beside mean(y) + x, and the program has not
    "inverse": f"2500000*(1/(x + 1) - {BIG}*(1/({BIG}*(x + 1.0000004))))",
    "inverse of a small number": f"2500000*(1/(x + 1) - {LEAST}/({LEAST}*(x + 1.0000004)))",
    "inverse of an atom": f"2500000*(1/sin(x + 1) - {BIG}*(1/({BIG}*sin(x + 1.0000004))))",
    "root": f"5000000*({HALF}*sqrt({TINY}*(x + 1.0000004)) - {HALF}*sqrt({TINY}*(x + 1)))",
    "positive part": f"2500000*(max(0, x - 0.5) - {ROOT}*({ROOT}*max(0, {TINIER}*(x - 0.5000004))))",
}


def transformer(tmp_path, source, n):
    construct(source, 1e-2, n=n, architecture="transformer").save(tmp_path / "net")
    return Tampered(tmp_path / "net", tmp_path / "forged")


@pytest.mark.parametrize("name", OTHERS)
def test_a_program_is_not_near_to_another_target(tmp_path, name):
    """The differences are of the order of 1; each is taken of atoms that differ by 4·10⁻⁷."""
    forged = transformer(tmp_path, "mean(y) + x", 2)
    f = target(f"mean(y) + x + {OTHERS[name]}", n=2)
    forged.edit("config", lambda c: c["ideal"].update(expression=f.source))

    def claim(certificate):
        certificate["target"] = f.source
        next(t for t in certificate["terms"] if t["name"] == "rounding")["bound"] = 1e-3
        certificate["total"] = sum(t["bound"] for t in certificate["terms"])

    assert not check(forged.edit("certificate", claim).folder).verified


def test_exponentials_that_overflow_are_not_all_one(tmp_path):
    """exp(C·0)² = 1 in f, exp(0.9·C·0 − 1000)² = 0 in the program."""
    forged = transformer(tmp_path, "mean(y) + exp(-(x - 0.3)**2)", 2)
    config = json.loads((forged.folder / "config.json").read_text())
    ledger, large, w = config["ledger"], 27 * 10**304, "(0.5 + 0.5*x)"
    value = next(v for v in ledger["values"] if v["op"] == "function")
    entry = next(g for g in ledger["gadgets"] if g["kind"] == "function")["stages"][0][0]
    value["expression"] = f"exp(0.9*{large}*max(0, 1000*({w}*{w} - {w} - 0.5)) - 1000)**2"
    f = target(f"mean(y) + exp({large}*max(0, 1000*(x*x - x - 0.5)))**2", n=2)
    config["ideal"]["expression"] = f.source
    constants, entry["constants"] = dict(entry["constants"]), {}
    prefix, (first, end) = f"blocks.{entry['block']}.feed_forward.", entry["units"]

    def silence(tensors):
        units = tensors[prefix + "place_2"][1]
        tensors[prefix + "value_2"][(units >= first) & (units < end)] = 0
        for c, v in constants.items():
            tensors[prefix + "b_2"][int(c)] -= v

    forged.weights(silence).edit("config", lambda old: (old.clear(), old.update(config)))
    forged.edit("certificate", lambda c: c.update(target=f.source))
    assert not check(forged.folder).verified


def test_a_head_that_overflows(tmp_path):
    """3 · 0.8·10³⁰⁸ before it is divided by 3: W_O, which is 0 there, makes NaN of it everywhere."""
    forged = transformer(tmp_path, "mean(exp(y)) + x", 3)
    config = json.loads((forged.folder / "config.json").read_text())
    ledger, blocks = config["ledger"], config["blocks"]["modules"]
    at, width, slope = ledger["attention"]["block"], config["read_in"]["out_features"], 0.4e308
    source, goal, i = width, width + 1, len(ledger["attention"]["from"])
    config["read_in"]["out_features"] = config["read_out"]["in_features"] = width + 2
    for block in blocks:
        block["feed_forward"]["d_model"] = width + 2
    blocks[at]["attention"]["d_model"] = width + 2
    blocks[at]["attention"]["d_head"] += 1
    layer = blocks[at - 1]["feed_forward"]
    hidden = layer["d_hidden"]
    layer.update(d_hidden=hidden + 1, nonzero_1=layer["nonzero_1"] + 1, nonzero_2=layer["nonzero_2"] + 1)
    own = next(v["name"] for v in ledger["values"] if v["op"] == "input")
    big = {"name": "big", "op": "function", "expression": f"{int(slope)}*(x + 1)", "at": source, "from": at}
    big |= {"of": {"of": [own], "weights": [1.0], "offset": 0.0}, "error": 0.0, "range": [0.0, 1.0]}
    mean = {"name": "big mean", "op": "mean", "of": "big", "at": goal, "from": at, "error": 0.0, "range": [0.0, 1.0]}
    ledger["values"] += [big, mean]
    for key, item in (("values", "big"), ("means", "big mean"), ("from", source), ("to", goal)):
        ledger["attention"][key].append(item)
    stage = {"block": at - 1, "units": [hidden, hidden + 1], "writes": {str(source): "big"}, "constants": {}}
    ledger["gadgets"].append({"kind": "function", "values": ["big"], "ranges": [], "stages": [[stage]]})

    def weights(tensors):
        for name, by in (("read_in.weight", ((0, 2), (0, 0))), ("read_in.bias", (0, 2))):
            tensors[name] = np.pad(tensors[name], by)
        tensors["read_out.weight"] = np.pad(tensors["read_out.weight"], ((0, 0), (0, 2)))
        for k in range(len(blocks)):
            name = f"blocks.{k}.feed_forward.b_2"
            tensors[name] = np.pad(tensors[name], (0, 2))
        head = f"blocks.{at}.attention."
        for letter in "QKV":
            tensors[f"{head}W_{letter}.weight"] = np.pad(tensors[f"{head}W_{letter}.weight"], ((0, 1), (0, 2)))
        tensors[head + "W_O.weight"] = np.pad(tensors[head + "W_O.weight"], ((0, 2), (0, 1)))
        tensors[head + "W_V.weight"][i, source] = tensors[head + "W_O.weight"][goal, i] = 1.0
        before = f"blocks.{at - 1}.feed_forward."
        tensors[before + "b_1"] = np.append(tensors[before + "b_1"], 1.0)
        for j, place, value in ((1, (hidden, 1), 1.0), (2, (source, hidden), slope)):
            more = np.array([place], dtype=np.int32).T
            tensors[f"{before}place_{j}"] = np.ascontiguousarray(
                np.concatenate([tensors[f"{before}place_{j}"], more], 1)
            )
            tensors[f"{before}value_{j}"] = np.append(tensors[f"{before}value_{j}"], value)

    forged.weights(weights).edit("config", lambda old: (old.clear(), old.update(config)))
    forged.edit("certificate", lambda c: c.update(latent_dimension=i + 1))
    X = torch.tensor([[[0.9], [0.8], [0.95]]], dtype=torch.float64)
    assert bool(load(forged.folder).network(X).isnan().any())
    assert not check(forged.folder).verified
