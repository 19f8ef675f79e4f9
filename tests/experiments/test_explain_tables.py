"""explain of a compiled network: its two tables agree, and its formulas name nothing that is not listed."""

from __future__ import annotations

import re

import pytest

import sumformer
from sumformer.experiments.explain import explain
from sumformer.experiments.explain.formula import affine, formulas

TARGETS = {
    "attention": ("sum(exp(-(x - y)**2)*y)/sum(exp(-(x - y)**2))", 1e-2, {"n": 3}),
    "root": ("norm(x - mean(y))", 1e-2, {"n": 3, "d": 2}),
    "table": ("max(y)", 0.2, {"n": 3}),
}


@pytest.fixture(scope="module", params=TARGETS)
def found(request, tmp_path_factory):
    source, epsilon, how = TARGETS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    sumformer.construct(source, epsilon, architecture="transformer", **how).save(folder)
    return explain(folder)


def test_the_tables_agree_on_when_a_value_is_complete(found):
    after = {name: b.block for b in found.blocks for name, _ in b.complete}
    for v in found.values:
        if v.op == "mean":
            assert v.block == found.attention_at
            assert v.name not in after
        elif v.block != "read-in":
            assert after.pop(v.name) == v.block
            held = found.stream[v.block + 1, v.coordinate]  # the stream before the next block
            assert float(held) == pytest.approx(v.computed, abs=1e-12)
    assert not after
    assert not found.violations


def test_every_name_in_a_formula_is_a_value(found):
    names = {v.name for v in found.values}
    for v in found.values:
        rest = v.formula
        for name in sorted(names, key=len, reverse=True):
            rest = rest.replace(name, "")
        assert not re.search(r"\bv\d+|#\d", rest), v.formula


def test_folded_values_stand_as_their_formula():
    def value(name, op, at, **rest):
        return {"name": name, "op": op, "at": at, **rest}

    def line(names, weights, offset=0.0):
        return {"of": names, "weights": weights, "offset": offset}

    u = value("u", "input", 1, coordinate=0)
    square = value("v1", "function", -1, of=line(["u"], [1.0]), expression="x**2")
    bent = value("v2", "function", -1, of=line(["u"], [1.0]), expression="x - x**2")
    total = value("s", "sum", 2, of=line(["v1", "v2", "u"], [2.0, -3.0, 1.0], -1.0))
    shown = formulas({"values": [u, square, bent, total], "centre": ["0"], "radius": ["1"]})
    assert shown == {"u": "(x[0] - 0)/(1)", "s": "2*u**2 - 3*(u - u**2) + u - 1"}
    assert affine(line(["v1"], [1.0])) == "v1"
