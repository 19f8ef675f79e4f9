"""What is left out is not lost to underflow before a weight makes it large: f has a part that the network lacks."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tampered import Tampered

from sumformer.certificates.checker import check
from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.compiled.piecewise import peak
from sumformer.certificates.checker.compiled.stream import Stream
from sumformer.certificates.checker.interval import Interval
from sumformer.certificates.checker.tracked import Tracked, TrackedOperations
from sumformer.targets.target import target
from sumformer.theorems.construction import construct, load

SMALL, LARGE, OUT = 2.0**-490, 2.0**490, 2.0**360
BIG, LITTLE = "1" + "0" * 200, "0." + "0" * 199 + "1"


def saved(tmp_path, source, epsilon=1e-2):
    construct(source, epsilon, n=2, architecture="transformer").save(tmp_path / "net")
    forged = Tampered(tmp_path / "net", tmp_path / "forged")
    return forged, json.loads((forged.folder / "config.json").read_text())


def functional(*pairs):
    return {"of": [name for name, _ in pairs], "weights": [weight for _, weight in pairs], "offset": 0.0}


def value(name, op, of, at=-1, ready=0, **more):
    return {"name": name, "op": op, "of": of, "at": at, "from": ready, "error": 0.0, "range": [0.0, 1.0], **more}


def widen(config, more):
    """Coordinates that nothing reads or writes; what they must be added to among the weights."""
    width = config["read_in"]["out_features"]
    config["read_in"]["out_features"] = config["read_out"]["in_features"] = width + more
    attended = config["ledger"]["attention"]["block"]
    blocks = config["blocks"]["modules"]
    for block in blocks:
        block["feed_forward"]["d_model"] = width + more
    blocks[attended]["attention"]["d_model"] = width + more

    def weights(t):
        t["read_in.weight"] = np.pad(t["read_in.weight"], ((0, more), (0, 0)))
        t["read_in.bias"] = np.pad(t["read_in.bias"], (0, more))
        t["read_out.weight"] = np.pad(t["read_out.weight"], ((0, 0), (0, more)))
        for k in range(len(blocks)):
            if f"blocks.{k}.feed_forward.b_2" in t:
                t[f"blocks.{k}.feed_forward.b_2"] = np.pad(t[f"blocks.{k}.feed_forward.b_2"], (0, more))
        prefix = f"blocks.{attended}.attention.W_"
        for q in "QKV":
            t[f"{prefix}{q}.weight"] = np.pad(t[f"{prefix}{q}.weight"], ((0, 0), (0, more)))
        t[f"{prefix}O.weight"] = np.pad(t[f"{prefix}O.weight"], ((0, more), (0, 0)))

    return width, weights


def add_unit(t, block, row, column, row_weight, bias, constant):
    """One more unit of a block: reads coordinate `row`, writes coordinate `column` with weight 1."""
    p = f"blocks.{block}.feed_forward."
    unit = len(t[p + "b_1"])
    t[p + "b_1"] = np.append(t[p + "b_1"], bias)
    t[p + "b_2"][column] = constant
    for i, place, weight in ((1, (unit, row), row_weight), (2, (column, unit), 1.0)):
        more = np.array([place], dtype=np.int32).T
        t[f"{p}place_{i}"] = np.ascontiguousarray(np.concatenate([t[f"{p}place_{i}"], more], 1))
        t[f"{p}value_{i}"] = np.append(t[f"{p}value_{i}"], weight)


def refused(forged, config, f, weights, bounds, X, more=()):
    """The network is off by more than 1/2 at X, and nobody says otherwise."""
    config["ideal"]["expression"] = f.source
    forged.weights(weights).edit("config", lambda old: (old.clear(), old.update(config)))

    def claim(c):
        c["target"], c["constants"]["blocks"] = f.source, len(config["blocks"]["modules"])
        for term in c["terms"]:
            term["bound"] = bounds.get(term["name"], term["bound"])
        c["terms"] += [{"name": name, "kind": "proved", "bound": bounds[name]} for name in more]
        c["total"] = sum(term["bound"] for term in c["terms"])
        for kernel in c["constants"]["ideal"].get("kernels", []):
            kernel["dropped"] = 1.0

    forged.edit("certificate", claim)
    off = load(forged.folder).network(X)[0, 0, 0].item()
    assert not check(forged.folder).verified
    with pytest.MonkeyPatch.context() as patch:  # nor by the rule that it breaks, were numbers of any size followed
        patch.setattr(Stream, "_moderate", lambda stream: None)
        verdict = check(forged.folder)
    assert not verdict.verified
    assert verdict.bound > 0.5
    return off


@pytest.mark.parametrize("g", ["exp(-({}*x)**2)", "max(0, 1 - abs({}*x))"])
def test_a_function_of_a_constant_is_bounded_there(tmp_path, g):
    """g(0) = 1 and no unit: on ±10⁻³⁰⁰ the curvature is ∞, and the width squared 0."""
    forged, config = saved(tmp_path, "mean(y) + x")
    width, pad = widen(config, 1)
    ledger = config["ledger"]
    units = config["blocks"]["modules"][0]["feed_forward"]["d_hidden"]
    ledger["values"] += [
        value("g", "function", functional(), ready=1, expression=g.format("1" + "0" * 305), range=[1.0, 1.0]),
        value("bad", "sum", functional(("g", 1000.0)), width, 1),
    ]
    entry = {"block": 0, "units": [units, units], "writes": {str(width): "g"}, "constants": {}}
    ledger["gadgets"].append({"kind": "function", "values": ["g"], "ranges": [], "stages": [[entry]]})
    ledger["outputs"][0]["of"].append("bad")
    ledger["outputs"][0]["weights"].append(1.0)

    def weights(t):
        pad(t)
        t["read_out.weight"][0, width] = 1.0

    X = torch.tensor([[[0.3], [0.8]]], dtype=torch.float64)
    bounds = {"rounding": 1e-9, "ψ gadgets": 1e-9}
    found = refused(forged, config, target("mean(y) + x + 1000", n=2), weights, bounds, X, more=["ψ gadgets"])
    assert abs(found - 0.85) < 1e-6


def test_a_curvature_that_is_no_number_is_no_bound():
    a, b = np.array([0.0]), np.array([0.0])
    assert np.isnan(peak(a, b, np.array([np.nan]))).all()
    assert peak(a, b, np.array([np.inf]))[0] == np.inf


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e-163])
def test_a_peak_is_no_lower_than_its_ends(scale):
    """(1 − τ) a + τ b + 4B τ(1 − τ) at its top: with a = 0, b = 3.96 B it is B (1 + 0.99)²."""
    top = peak(np.array([0.0]), np.array([3.96 * scale]), np.array([scale]))[0]
    assert 1.99**2 * scale <= top <= 3.9602 * scale


def test_errors_of_exact_passes_are_not_lost():
    """10⁻²⁰⁰ · (10⁻²⁰⁰ · v) is 0 in floats, its error is not: times 10⁴⁰⁰ it is v's."""
    ops = TrackedOperations(Arithmetic.exact())
    point = Interval(np.array([1e-200]), np.array([1e-200]))
    small, v = Tracked(point, np.zeros(1)), Tracked(Interval(np.array([0.0]), np.array([1.0])), np.array([0.1]))
    product = ops.mul(small, ops.mul(small, v))
    assert product.error[0] > 0
    assert ops.power(Tracked(v.value, np.array([1e-200])), 2).error[0] > 0
    assert ops.norm([Tracked(v.value, np.array([1e-200]))] * 2).error[0] > 0


def test_a_sumformer_of_zeros_is_not_the_target(tmp_path):
    """f(1, 1) = tanh 1, written so that torch computes 0."""
    kernel = "mean(tanh(x*y))"
    forged, config = saved(tmp_path, kernel, 1e-3)
    width, pad = widen(config, 1)
    ledger = config["ledger"]
    for v in ledger["values"]:
        if v.get("because", {}).get("reduction"):
            v.pop("because")
    because = {"reduction": kernel, "component": 0}
    ledger["values"].append(value("zero", "sum", functional(), width, because=because, range=[0.0, 0.0]))
    ledger["outputs"] = [functional(("zero", 1.0))]

    def weights(t):
        pad(t)
        t["ideal.coefficients.0"][:] = 0
        t["read_out.weight"][:] = 0
        t["read_out.weight"][0, width] = 1.0

    names = ("interpolation remainder", "dropped and rounded coefficients", "φ gadgets", "sum head", "ψ gadgets")
    bounds = {**dict.fromkeys(names, 0.0), "rounding": 1e-9}
    f = target(f"{BIG}*({BIG}*({LITTLE}*({LITTLE}*{kernel})))", n=2)
    assert refused(forged, config, f, weights, bounds, torch.ones(1, 2, 1, dtype=torch.float64)) == 0.0


def amplified(config, width, square):
    """`square` · 2⁹⁸⁰ · 2³⁶⁰ is read out; what is charged for it must not be 0."""
    config["ledger"]["values"] += [
        value("z", "sum", functional((square, LARGE)), width, 1 if square == "silent" else 2),
        value("zz", "sum", functional(("z", LARGE)), width + 1, 2 if square == "silent" else 3),
    ]
    config["ledger"]["outputs"][0]["of"].append("zz")
    config["ledger"]["outputs"][0]["weights"].append(OUT)


def plain_block(width):
    feed_forward = {"type": "SparseFeedForward", "d_model": width, "d_hidden": 1, "nonzero_1": 0, "nonzero_2": 0}
    rest = {"attention_norm": None, "feed_forward_norm": None, "dropout": 0.0, "feed_forward": feed_forward}
    return {"type": "Block", "attention": {"type": "Zero"}, **rest}


def empty_weights(t, k, width):
    p = f"blocks.{k}.feed_forward."
    t[p + "b_1"], t[p + "b_2"] = np.zeros(1), np.zeros(width)
    for i in (1, 2):
        t[f"{p}place_{i}"], t[f"{p}value_{i}"] = np.zeros((2, 0), dtype=np.int32), np.zeros(0)


def identity(name, block, unit, at, constant):
    entry = {"block": block, "units": [unit, unit + 1], "writes": {str(at): name}, "constants": {str(at): constant}}
    return {"kind": "identity", "values": [name], "stages": [[entry]]}


def count(config, block):
    """One more unit, with one weight before and one behind it; its number."""
    layer = config["blocks"]["modules"][block]["feed_forward"]
    layer.update({key: layer[key] + 1 for key in ("d_hidden", "nonzero_1", "nonzero_2")})
    return layer["d_hidden"] - 1


def test_a_linear_product_of_small_numbers(tmp_path):
    """(2x − 1)² of numbers near 10⁻²⁰⁰, by a product that has no weights: |a − a₀||b − b₀| is 0 as a float."""
    forged, config = saved(tmp_path, "mean(y) + x")
    width, pad = widen(config, 3)
    ledger, total = config["ledger"], width + 3
    config["blocks"]["modules"] += [plain_block(total), plain_block(total)]
    first = count(config, 0)
    config["blocks"]["modules"][2]["feed_forward"].update(nonzero_1=1, nonzero_2=1)
    ledger["values"] += [
        value("s", "sum", functional(("u0#0", SMALL)), width + 2, 1),
        value("v", "product", [functional(("s", 2.0**-180))] * 2),
    ]
    amplified(config, width, "v")
    bias = 2.0**-355
    entry = {"block": 1, "units": [0, 1], "writes": {str(width): "v"}, "constants": {}}
    ledger["gadgets"] += [
        identity("s", 0, first, width + 2, -2 * SMALL),
        {"kind": "product", "values": ["v"], "ranges": [[-1.0, 1.0]] * 2, "stages": [[entry]]},
        identity("zz", 2, 0, width + 1, -bias),
    ]

    def weights(t):
        pad(t)
        t["read_out.weight"][0, width + 1] = OUT
        add_unit(t, 0, 1, width + 2, SMALL, 2 * SMALL, -2 * SMALL)
        for k in (1, 2):
            empty_weights(t, k, total)
        t["blocks.2.feed_forward.b_1"] = np.zeros(0)
        add_unit(t, 2, width, width + 1, LARGE, bias, -bias)

    X = torch.tensor([[[1.0], [0.0]]], dtype=torch.float64)
    f = target("mean(y) + x + (2*x - 1)**2", n=2)
    assert abs(refused(forged, config, f, weights, {"rounding": 1e-6}, X) - 1.5) < 1e-6


def test_a_product_of_small_numbers_that_is_left_out(tmp_path):
    """A hat squared, in numbers near 10⁻²⁰⁰: what no unit makes is all error, and not 0."""
    forged, config = saved(tmp_path, "mean(y) + x")
    width, pad = widen(config, 2)
    ledger, unit = config["ledger"], count(config, 0)
    hat = "max(0, 1 - abs({} - 0.25)*524288)"
    ledger["values"] += [
        value("h", "function", functional(("u0#0", 1.0)), expression=hat.format("x")),
        value("s", "sum", functional(("h", SMALL))),
        value("silent", "product", [functional(("s", 2.0**-180))] * 2),
    ]
    amplified(config, width, "silent")
    for v in ledger["values"][-2:]:
        v["from"] -= 1
    ledger["gadgets"] += [
        {"kind": "product", "values": ["silent"], "ranges": [], "stages": []},
        identity("zz", 0, unit, width + 1, -1e-110),
    ]

    def weights(t):
        pad(t)
        t["read_out.weight"][0, width + 1] = OUT
        add_unit(t, 0, width, width + 1, LARGE, 1e-110, -1e-110)

    X = torch.tensor([[[0.625], [0.8]]], dtype=torch.float64)
    f = target(f"mean(y) + x + {hat.format('2*x - 1')}**2", n=2)
    assert abs(refused(forged, config, f, weights, {"rounding": 5e-3}, X) - 1.3375) < 1e-2
