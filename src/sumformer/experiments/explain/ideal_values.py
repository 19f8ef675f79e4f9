"""The ideal program of a ledger, evaluated exactly as it is written: g itself instead of its piecewise-linear image."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from sumformer.targets import Environment, evaluate, parse
from sumformer.targets.torch_evaluation import TorchOperations


def ideal_values(ledger: Mapping[str, Any], X: Tensor) -> dict[str, Tensor]:
    """Every value of the program at every token of X (n, d), by name; a mean is the same at all tokens."""
    centre = X.new_tensor([float(Fraction(c)) for c in ledger["centre"]])
    radius = X.new_tensor([float(Fraction(r)) for r in ledger["radius"]])
    u = (X - centre) / radius
    ops = TorchOperations(X.dtype, X.device)
    out: dict[str, Tensor] = {}
    for value in ledger["values"]:
        out[value["name"]] = _value(value, u, out, ops)
    return out


def _value(value: Mapping[str, Any], u: Tensor, known: Mapping[str, Tensor], ops: TorchOperations) -> Tensor:
    match value["op"]:
        case "input":
            return u[:, value["coordinate"]]
        case "mean":
            return known[value["of"]].mean().expand(u.shape[0])
        case "product":
            a, b = (functional(f, known, u) for f in value["of"])
            return a * b
        case "sum":
            return functional(value["of"], known, u)
    t = functional(value["of"], known, u)
    return evaluate(parse(value["expression"], 1), ops, Environment(x=t[:, None]))[:, 0].expand(u.shape[0])


def functional(f: Mapping[str, Any], known: Mapping[str, Tensor], like: Tensor) -> Tensor:
    """Σ w v + b at every token."""
    total = torch.full((like.shape[0],), float(f["offset"]), dtype=like.dtype)
    for name, weight in zip(f["of"], f["weights"], strict=True):
        total = total + weight * known[name]
    return total
