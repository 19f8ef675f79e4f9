"""explain(folder, X): what each block does, which coordinate holds what, and each value beside its ideal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from sumformer.errors import NotSupportedError
from sumformer.experiments.explain.attention_matrix import attention_matrix, stream
from sumformer.experiments.explain.ideal_values import functional, ideal_values
from sumformer.nn.compiled_transformer import CompiledTransformer
from sumformer.theorems.construction import Construction, load


@dataclass(frozen=True)
class BlockLine:
    """One block: hidden units, gadgets by kind, the values complete after it and their coordinates."""

    block: int
    hidden: int
    gadgets: dict[str, int]
    complete: tuple[tuple[str, int], ...]
    attention: bool


@dataclass(frozen=True)
class ValueLine:
    """One value at one token: what the stream holds, what it should be, how far it may be off."""

    name: str
    op: str
    coordinate: int
    block: int
    computed: float
    ideal: float
    allowed: float


@dataclass(frozen=True)
class Explanation:
    """Blocks, values at the first token, outputs beside the target, and the tensors for the pictures."""

    construction: Construction
    X: Tensor
    blocks: tuple[BlockLine, ...]
    values: tuple[ValueLine, ...]
    outputs: Tensor
    wanted: Tensor
    ideal_outputs: Tensor
    stream: Tensor
    attention: Tensor

    @property
    def violations(self) -> list[str]:
        """Values farther from their ideal than the ledger allows: there must be none."""
        return [v.name for v in self.values if abs(v.computed - v.ideal) > v.allowed * (1 + 1e-9) + 1e-13]


def explain(folder: str | Path, X: Tensor | None = None) -> Explanation:
    """Run a saved compiled network on X (n, d), by default a few tokens spread over the box."""
    made = load(folder)
    network = made.network
    if not isinstance(network, CompiledTransformer):
        raise NotSupportedError(
            f"explain reads compiled networks (construct … --as transformer); this is a {type(network).__name__}"
        )
    X = spread(made) if X is None else X.to(torch.float64)
    made.target.box.check(X[None])
    with torch.no_grad():
        states = stream(network, X)
        ideal = ideal_values(network.ledger, X)
        before = states[network.attention_block]
        seen = before + network.attention(before[None])[0]
        lines = [
            _value(v, ideal, seen if v["op"] == "mean" else states[v["from"]])
            for v in network.ledger["values"]
            if v["at"] >= 0
        ]
        outputs = torch.stack([functional(f, ideal, X) for f in network.ledger["outputs"]], dim=-1)
        return Explanation(
            made,
            X,
            tuple(_block(network, k) for k in range(len(network.blocks))),
            tuple(lines),
            network(X[None])[0],
            made.target(X[None])[0],
            outputs,
            torch.stack([s[0] for s in states]),
            attention_matrix(network.attention, before[None]),
        )


def spread(made: Construction) -> Tensor:
    """A few tokens over the box: as many as the certificate allows, at most 8."""
    tokens, box = made.target.tokens, made.target.box
    n = tokens.minimum if tokens.exact else min(max(tokens.minimum, 5), tokens.maximum)
    generator = torch.Generator().manual_seed(0)
    unit = torch.rand(n, box.d, generator=generator, dtype=torch.float64)
    low = torch.tensor([float(a) for a in box.lower], dtype=torch.float64)
    side = torch.tensor([float(2 * r) for r in box.radius], dtype=torch.float64)
    return low + side * unit


def _value(value: dict[str, object], ideal: dict[str, Tensor], state: Tensor) -> ValueLine:
    name, at = str(value["name"]), int(str(value["at"]))
    computed, wanted = float(state[0, at]), float(ideal[name][0])
    return ValueLine(name, str(value["op"]), at, int(str(value["from"])), computed, wanted, float(str(value["error"])))


def _block(network: CompiledTransformer, k: int) -> BlockLine:
    kinds: Counter[str] = Counter()
    for gadget in network.ledger["gadgets"]:
        kinds[gadget["kind"]] += any(entry["block"] == k for stage in gadget["stages"] for entry in stage)
    complete = [(v["name"], v["at"]) for v in network.ledger["values"] if v["from"] == k + 1 and v["at"] >= 0]
    hidden = int(network.blocks[k].feed_forward.d_hidden)  # type: ignore[union-attr, arg-type]
    counted = {kind: count for kind, count in kinds.items() if count}
    return BlockLine(k, hidden, counted, tuple(complete), k == network.attention_block)
