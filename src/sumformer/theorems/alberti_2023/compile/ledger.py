"""The ledger of a compiled network: which value stands where and since when, and which units compute it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sumformer.algebra.rounding import FloatArray
from sumformer.targets import to_source
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.compile.assembly import Assembly
from sumformer.theorems.alberti_2023.compile.functional import Functional
from sumformer.theorems.alberti_2023.compile.program import Value
from sumformer.theorems.alberti_2023.compile.realise import Realised, place

Names = Mapping[int, str]


def ledger_of(
    assembly: Assembly, realised: list[Realised], box: Box, errors: FloatArray, tokens: int | None
) -> dict[str, Any]:
    """As config.json has it; `tokens` where the weights know n."""
    budget = assembly.budget
    used = [v for v in budget.program.values if budget.sensitivity[v.index]]
    names = {v.index: v.name for v in used}
    return {
        "centre": [str(Fraction(c)) for c in box.centre],
        "radius": [str(Fraction(r)) for r in box.radius],
        "values": [_value(v, assembly, names, float(errors[v.index])) for v in used],
        "gadgets": _gadgets(assembly, realised, names),
        "attention": _attention(assembly, names),
        "outputs": [_functional(f, names) for f in budget.outputs],
        "tokens": tokens,
    }


def _functional(f: Functional, names: Names) -> dict[str, Any]:
    return {"of": [names[v] for v, _ in f.terms], "weights": [w for _, w in f.terms], "offset": f.offset}


def _value(v: Value, assembly: Assembly, names: Names, error: float) -> dict[str, Any]:
    s, where = assembly.s, assembly.layout.coordinate
    out: dict[str, Any] = {"name": v.name, "op": v.op, "range": [v.lo, v.hi], "error": error, "phase": v.phase}
    if v.op == "input":
        out["coordinate"] = v.coordinate
    elif v.op == "mean":
        out["of"] = names[v.of[0].terms[0][0]]
    elif v.op == "product":
        out["of"] = [_functional(f, names) for f in v.of]
    else:
        out["of"] = _functional(v.of[0], names)
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


def _gadgets(assembly: Assembly, realised: list[Realised], names: Names) -> list[dict[str, Any]]:
    def label(place_name: str) -> str:
        return names[int(place_name)] if place_name.isdigit() else f"workspace {place_name}"

    ranges = {r.values: r.ranges for r in realised}
    out = []
    for g in assembly.gadgets:
        stages = [[{**e, "writes": {c: label(p) for c, p in e["writes"].items()}} for e in st] for st in g.stages]
        entry: dict[str, Any] = {"kind": g.kind, "values": [names[v] for v in g.values], "error": list(g.errors)}
        if g.kind not in ("identity", "clear"):
            entry["ranges"] = [list(r) for r in ranges[g.values]]
        out.append({**entry, "stages": stages})
    return out


def _attention(assembly: Assembly, names: Names) -> dict[str, Any]:
    means = _means(assembly)
    sources, targets = attention_places(assembly)
    return {
        "block": assembly.s.attention,
        "values": [names[v.of[0].terms[0][0]] for v in means],
        "means": [v.name for v in means],
        "from": sources,
        "to": targets,
    }


def attention_places(assembly: Assembly) -> tuple[list[int], list[int]]:
    """Coordinates of what is averaged, and of the means."""
    where, means = assembly.layout.coordinate, _means(assembly)
    return [where[place(v.of[0].terms[0][0])] for v in means], [where[place(v.index)] for v in means]


def _means(assembly: Assembly) -> list[Value]:
    budget = assembly.budget
    return [v for v in budget.program.values if v.op == "mean" and budget.sensitivity[v.index]]
