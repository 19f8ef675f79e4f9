"""The assembled weights as a module of `nn`, with the ledger that says what they are for."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import torch
from torch import nn

from sumformer.algebra.rounding import FloatArray
from sumformer.nn.block import Block
from sumformer.nn.compiled_transformer import CompiledTransformer
from sumformer.nn.multi_head import MultiHead
from sumformer.nn.pretrained import PretrainedModule
from sumformer.nn.sparse_feed_forward import SparseFeedForward
from sumformer.nn.zero import Zero
from sumformer.targets import to_source
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.compile.assembly import Assembly, BlockWeights, Sparse
from sumformer.theorems.alberti_2023.compile.functional import Functional
from sumformer.theorems.alberti_2023.compile.layout import ONE
from sumformer.theorems.alberti_2023.compile.program import Value
from sumformer.theorems.alberti_2023.compile.realise import Realised, place

Head = Callable[[int, list[int], list[int]], MultiHead]
"""(width of the stream, coordinates of the values, coordinates of the means) → the attention."""


def to_network(
    assembly: Assembly,
    realised: list[Realised],
    box: Box,
    head: Head,
    ideal: PretrainedModule,
    errors: FloatArray,
    tokens: int | None,
) -> CompiledTransformer:
    """Read-in, blocks, read-out."""
    layout, s, outputs = assembly.layout, assembly.s, assembly.budget.outputs
    width = layout.width
    values, means = attention_places(assembly)
    blocks = []
    for k, weights in enumerate(assembly.blocks):
        attention: nn.Module = head(width, values, means) if k == s.attention else Zero()
        blocks.append(Block(attention, _feed_forward(weights, width)))
    read_in = nn.Linear(box.d, width, dtype=torch.float64)
    read_out = nn.Linear(width, len(outputs), bias=False, dtype=torch.float64)
    with torch.no_grad():
        for parameter in (*read_in.parameters(), *read_out.parameters()):
            parameter.zero_()
        read_in.bias[ONE] = 1.0
        for c, (centre, radius) in enumerate(zip(box.centre, box.radius, strict=True)):
            read_in.weight[1 + c, c], read_in.bias[1 + c] = float(1 / radius), float(-centre / radius)
        for i, f in enumerate(outputs):
            read_out.weight[i, ONE] = f.offset
            for v, w in f.terms:
                read_out.weight[i, layout.coordinate[place(v)]] = w
    ledger = _ledger(assembly, realised, box, errors, tokens)
    return CompiledTransformer(read_in, blocks, read_out, ideal, ledger)


def attention_places(assembly: Assembly) -> tuple[list[int], list[int]]:
    """Coordinates of what is averaged, and of the means."""
    budget, where = assembly.budget, assembly.layout.coordinate
    means = [v for v in budget.program.values if v.op == "mean" and budget.sensitivity[v.index]]
    return [where[place(v.of[0].terms[0][0])] for v in means], [where[place(v.index)] for v in means]


def _feed_forward(weights: BlockWeights, width: int) -> SparseFeedForward:
    one, two = weights.first, weights.second
    layer = SparseFeedForward(width, weights.hidden, len(one.weights), len(two.weights)).double()
    with torch.no_grad():
        for i, part in ((1, one), (2, two)):
            getattr(layer, f"place_{i}").copy_(_places(part))
            getattr(layer, f"value_{i}").copy_(torch.from_numpy(part.weights))
        layer.b_1.copy_(torch.from_numpy(weights.b_1))
        layer.b_2.copy_(torch.from_numpy(weights.b_2))
    return layer


def _places(part: Sparse) -> torch.Tensor:
    return torch.stack([torch.from_numpy(part.rows.copy()), torch.from_numpy(part.columns.copy())]).int()


def _ledger(
    assembly: Assembly, realised: list[Realised], box: Box, errors: FloatArray, tokens: int | None
) -> dict[str, Any]:
    budget, s, where = assembly.budget, assembly.s, assembly.layout.coordinate
    program = budget.program
    used = [v for v in program.values if budget.sensitivity[v.index]]
    names = {v.index: v.name for v in used}

    def functional(f: Functional) -> dict[str, Any]:
        return {"of": [names[v] for v, _ in f.terms], "weights": [w for _, w in f.terms], "offset": f.offset}

    def value(v: Value) -> dict[str, Any]:
        out: dict[str, Any] = {"name": v.name, "op": v.op, "range": [v.lo, v.hi], "error": float(errors[v.index])}
        out["phase"] = v.phase
        if v.op == "input":
            out["coordinate"] = v.coordinate
        elif v.op == "mean":
            out["of"] = names[v.of[0].terms[0][0]]
        elif v.op == "product":
            out["of"] = [functional(f) for f in v.of]
        else:
            out["of"] = functional(v.of[0])
        if v.expression is not None:
            out["expression"] = to_source(v.expression)
        if v.op == "sum":
            out["weight_error"] = v.weight_error
        if v.because is not None:
            out["because"] = dict(v.because)
        out["at"] = where.get(place(v.index), -1)
        out["from"] = s.ready[v.index]
        out["until"] = s.last_read.get(v.index, s.blocks)
        return out

    def label(place_name: str) -> str:
        return names[int(place_name)] if place_name.isdigit() else f"workspace {place_name}"

    ranges = {r.values: r.ranges for r in realised}
    gadgets = []
    for g in assembly.gadgets:
        stages = [[{**e, "writes": {c: label(p) for c, p in e["writes"].items()}} for e in st] for st in g.stages]
        entry: dict[str, Any] = {"kind": g.kind, "values": [names[v] for v in g.values], "error": list(g.errors)}
        if g.kind not in ("identity", "clear"):
            entry["ranges"] = [list(r) for r in ranges[g.values]]
        gadgets.append({**entry, "stages": stages})
    sources, means = attention_places(assembly)
    mean_values = [v for v in used if v.op == "mean"]
    attention = {
        "block": s.attention,
        "values": [names[v.of[0].terms[0][0]] for v in mean_values],
        "means": [v.name for v in mean_values],
        "from": sources,
        "to": means,
    }
    return {
        "centre": [str(Fraction(c)) for c in box.centre],
        "radius": [str(Fraction(r)) for r in box.radius],
        "values": [value(v) for v in used],
        "gadgets": gadgets,
        "attention": attention,
        "outputs": [functional(f) for f in budget.outputs],
        "tokens": tokens,
    }
