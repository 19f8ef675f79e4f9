"""A compiled network: the ledger's values in the residual stream beside those of the ideal program."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor

from sumformer.experiments.explain.attention_matrix import attention_matrix, stream
from sumformer.experiments.explain.explanation import BlockLine, Explanation, ValueLine
from sumformer.experiments.explain.formula import affine, formulas
from sumformer.experiments.explain.ideal_values import functional, ideal_values
from sumformer.nn.compiled_transformer import CompiledTransformer
from sumformer.theorems.constructed import Construction


def explain_compiled(made: Construction, network: CompiledTransformer, X: Tensor, tokens: Tensor) -> Explanation:
    """X as given, and the `tokens` (n, d) that the network sees."""
    states = stream(network, tokens)
    ideal = ideal_values(network.ledger, tokens)
    before = states[network.attention_block]
    seen = before + network.attention(before[None])[0]
    meaning = formulas(network.ledger)
    lines = [
        _value(v, meaning[v["name"]], ideal, seen if v["op"] == "mean" else states[v["from"]])
        for v in network.ledger["values"]
        if v["at"] >= 0
    ]
    outputs = network.ledger["outputs"]
    names = ["output"] if len(outputs) == 1 else [f"output[{i}]" for i in range(len(outputs))]
    return Explanation(
        made,
        X,
        tuple(_block(network, k) for k in range(len(network.blocks))),
        tuple(lines),
        network(tokens[None])[0],
        made.target(X[None])[0],
        torch.stack([functional(f, ideal, tokens) for f in outputs], dim=-1),
        notes=tuple(f"{name} = {affine(f)}" for name, f in zip(names, outputs, strict=True)),
        stream=torch.stack([s[0] for s in states]),
        attention=attention_matrix(network.attention, before[None]),
        attention_at=network.attention_block,
    )


def _value(value: dict[str, Any], meaning: str, ideal: dict[str, Tensor], state: Tensor) -> ValueLine:
    name, at = value["name"], value["at"]
    computed, wanted = float(state[0, at]), float(ideal[name][0])
    return ValueLine(name, value["op"], at, _completed(value), computed, wanted, value["error"], meaning)


def _completed(value: dict[str, Any]) -> int | str:
    """The block after which the stream holds it; a mean stands in X + Att(X) of its block."""
    if value["op"] == "mean":
        return int(value["from"])
    return int(value["from"]) - 1 if value["from"] else "read-in"


def _block(network: CompiledTransformer, k: int) -> BlockLine:
    kinds: Counter[str] = Counter()
    for gadget in network.ledger["gadgets"]:
        kinds[gadget["kind"]] += any(entry["block"] == k for stage in gadget["stages"] for entry in stage)
    values = [v for v in network.ledger["values"] if v["at"] >= 0 and v["op"] != "mean"]
    complete = [(v["name"], v["at"]) for v in values if _completed(v) == k]
    hidden = int(network.blocks[k].feed_forward.d_hidden)  # type: ignore[union-attr, arg-type]
    counted = {kind: count for kind, count in kinds.items() if count}
    return BlockLine(k, hidden, counted, tuple(complete), k == network.attention_block)
