"""v = g(Σ_i w_i v_i + b): what a value of the ledger is, in the names of the values before it.

A value that has no coordinate, as its gadget writes it straight into the sum that uses it, stands there as its formula.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sumformer.targets import parse, to_source
from sumformer.targets.tree import Token

X = Token("x", 1)


def formulas(ledger: Mapping[str, Any]) -> dict[str, str]:
    """Of every value that has a coordinate, by name."""
    found: dict[str, str] = {}
    folded: dict[str, str] = {}
    for value in ledger["values"]:
        kept = found if value["at"] >= 0 else folded
        kept[value["name"]] = formula(value, ledger, folded)
    return found


def formula(value: Mapping[str, Any], ledger: Mapping[str, Any], folded: Mapping[str, str] | None = None) -> str:
    """As 2*u0**2 - 1, v3*v4, exp(-v3 - v7), mean of v3; weights to three digits."""
    match value["op"]:
        case "input":
            c = value["coordinate"]
            return f"(x[{c}] - {ledger['centre'][c]})/({ledger['radius'][c]})"
        case "mean":
            return f"mean of {value['of']}"
        case "product":
            return "*".join(_atom(f) for f in value["of"])
        case "sum":
            return affine(value["of"], folded)
    return to_source(parse(value["expression"], 1), {X: _argument(value["of"], value["expression"])})


def _atom(f: Mapping[str, Any]) -> str:
    text = affine(f)
    return text if text in f["of"] else f"({text})"


def _argument(f: Mapping[str, Any], expression: str) -> str:
    """Of a function alone, as exp(x), the brackets are there already."""
    return affine(f) if re.fullmatch(r"[a-z]+\(x\)", expression) else _atom(f)


def affine(f: Mapping[str, Any], folded: Mapping[str, str] | None = None) -> str:
    """Σ_i w_i v_i + b; `folded` values by their formula."""
    names = [_bracketed(folded[name]) if folded and name in folded else name for name in f["of"]]
    terms = [(weight, name) for name, weight in zip(names, f["weights"], strict=True) if weight]
    if f["offset"] or not terms:
        terms.append((f["offset"], ""))
    text = " + ".join(_term(weight, name) for weight, name in terms)
    return text.replace("+ -", "- ")


def _bracketed(text: str) -> str:
    """With brackets where a weight before it would otherwise belong to its first term alone."""
    bare = text
    while bare != (bare := re.sub(r"\([^()]*\)", "", bare)):
        pass
    return f"({text})" if " + " in bare or " - " in bare or bare.startswith("-") else text


def _term(weight: float, name: str) -> str:
    if not name:
        return f"{weight:.3g}"
    return {1.0: name, -1.0: f"-{name}"}.get(weight, f"{weight:.3g}*{name}")
