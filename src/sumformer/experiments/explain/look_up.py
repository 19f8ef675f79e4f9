"""A look-up network: cell, code, mean and entry in the residual stream beside what the table's own program says.

  cell = Σ_c k^{d−1−c} #{edges ≤ x_c}     code = φ(cell)     mean = (1/n) Σ_j code_j     out = table at A·cell + n·mean

All are exact but the mean, whose rounding the table rounds away. With ReLU this holds where no token is on a ramp.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np
import torch
from torch import Tensor

from sumformer.experiments.explain.attention_matrix import attention_matrix, stream
from sumformer.experiments.explain.explanation import BlockLine, Explanation, ValueLine
from sumformer.nn.look_up_transformer import LookUpTransformer
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.look_up.plan import NEAR
from sumformer.theorems.alberti_2023.look_up.table import make_table
from sumformer.theorems.constructed import Construction


@dataclass(frozen=True)
class Ideal:
    """For each token: cell, code, entry (n, width), and how far the cell may be off because of ramps."""

    cell: list[int]
    code: list[int]
    out: Tensor
    ramp: list[float]


def explain_look_up(made: Construction, network: LookUpTransformer, X: Tensor) -> Explanation:
    """Three staircases, one attention."""
    states, per = stream(network, X), len(network.blocks) // 3
    before, layer = states[2 * per], network.blocks[2 * per].attention
    seen = before + layer(before[None])[0]  # type: ignore[operator]
    ideal = _ideal(made, X)
    return Explanation(
        made,
        X,
        tuple(_block(network, k, per) for k in range(len(network.blocks))),
        tuple(_values(network, ideal, [states[per], states[2 * per], seen, states[-1]], per)),
        network(X[None])[0],
        made.target(X[None])[0],
        ideal.out,
        tuple(f"token {j + 1} is on a ramp: what follows its cell is not promised" for j in _on_ramps(ideal)),
        stream=torch.stack([s[0] for s in states]),
        attention=attention_matrix(layer, before[None]),  # type: ignore[arg-type]
        attention_at=2 * per,
    )


def _ideal(made: Construction, X: Tensor) -> Ideal:
    f, constants = made.target, made.certificate.constants
    assert isinstance(f, Target)
    k, ramps = int(constants["cells"]), constants.get("ramps", [0.0] * f.d)
    cell, off = [0] * len(X), [0.0] * len(X)
    for c, (low, high) in enumerate(zip(f.box.lower, f.box.upper, strict=True)):
        edges = [float(low + (high - low) * Fraction(i, k)) for i in range(1, k)]
        for j, x in enumerate(X[:, c].tolist()):
            cell[j] = cell[j] * k + sum(edge <= x for edge in edges)
            off[j] += k ** (f.d - 1 - c) * sum(abs(x - edge) < ramps[c] / 2 for edge in edges)
    table = make_table(f, k)
    code = [table.code[q] for q in cell]
    place = np.searchsorted(table.keys, [table.stride * q + sum(code) for q in cell])
    return Ideal(cell, code, torch.from_numpy(table.values[place]), off)


def _on_ramps(ideal: Ideal) -> list[int]:
    return [j for j, off in enumerate(ideal.ramp) if off]


def _values(network: LookUpTransformer, ideal: Ideal, states: list[Tensor], per: int) -> list[ValueLine]:
    """At the first token; `states` holds the streams in which cell, code, mean and entry are complete."""
    at, n = network.layout, network.n
    own, anyone = (inf if off else 0.0 for off in (ideal.ramp[0], sum(ideal.ramp)))
    near = max(anyone, NEAR / n)
    found = [
        ("cell", "look-up", at["cell"], per - 1, states[0], ideal.cell[0], ideal.ramp[0]),
        ("code", "look-up", at["code"], 2 * per - 1, states[1], ideal.code[0], own),
        ("mean of code", "mean", at["mean"], 2 * per, states[2], sum(ideal.code) / n, near),
    ]
    for w, coordinate in enumerate(at["out"]):
        found.append(
            (f"out {w + 1}", "look-up", coordinate, 3 * per - 1, states[3], float(ideal.out[0, w]), anyone),
        )
    return [
        ValueLine(name, op, place, block, float(state[0, place]), float(wanted), allowed)
        for name, op, place, block, state, wanted, allowed in found
    ]


def _block(network: LookUpTransformer, k: int, per: int) -> BlockLine:
    at, stair = network.layout, k // per
    name = ("x → cell", "cell → code", "cell, mean → out")[stair]
    kind = "step" if per == 1 else "ramp" if k % per == 0 else "ramp cut at 1"
    writes = ([("cell", at["cell"])], [("code", at["code"])], [(f"out {w + 1}", c) for w, c in enumerate(at["out"])])
    complete = writes[stair] if k % per == per - 1 else []
    hidden = int(network.blocks[k].feed_forward.d_hidden)  # type: ignore[union-attr, arg-type]
    return BlockLine(k, hidden, {f"{kind}, {name}": hidden}, tuple(complete), k == 2 * per)
