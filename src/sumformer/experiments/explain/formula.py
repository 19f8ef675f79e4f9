"""v = g(Σ_i w_i v_i + b): what a value of the ledger is, in the names of the values before it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sumformer.targets import parse, to_source
from sumformer.targets.tree import Token

X = Token("x", 1)


def formula(value: Mapping[str, Any], ledger: Mapping[str, Any]) -> str:
    """As 2*v5 - 1, v3*v4, exp(-v3 - v7), mean of v3; weights to three digits."""
    match value["op"]:
        case "input":
            c = value["coordinate"]
            return f"(x[{c}] - {ledger['centre'][c]})/({ledger['radius'][c]})"
        case "mean":
            return f"mean of {value['of']}"
        case "product":
            return "*".join(_atom(f) for f in value["of"])
        case "sum":
            return affine(value["of"])
    return to_source(parse(value["expression"], 1), {X: _argument(value["of"], value["expression"])})


def _atom(f: Mapping[str, Any]) -> str:
    text = affine(f)
    return text if text in f["of"] else f"({text})"


def _argument(f: Mapping[str, Any], expression: str) -> str:
    """Of a function alone, as exp(x), the brackets are there already."""
    return affine(f) if re.fullmatch(r"[a-z]+\(x\)", expression) else _atom(f)


def affine(f: Mapping[str, Any]) -> str:
    """Σ_i w_i v_i + b."""
    terms = [(weight, name) for name, weight in zip(f["of"], f["weights"], strict=True) if weight]
    if f["offset"] or not terms:
        terms.append((f["offset"], ""))
    text = " + ".join(_term(weight, name) for weight, name in terms)
    return text.replace("+ -", "- ")


def _term(weight: float, name: str) -> str:
    if not name:
        return f"{weight:.3g}"
    return {1.0: name, -1.0: f"-{name}"}.get(weight, f"{weight:.3g}*{name}")
