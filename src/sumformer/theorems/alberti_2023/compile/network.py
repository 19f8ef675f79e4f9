"""The assembled weights as a module of `nn`, with the ledger that says what they are for."""

from __future__ import annotations

import torch
from torch import nn

from sumformer.algebra.rounding import FloatArray
from sumformer.nn.block import Block
from sumformer.nn.compiled_transformer import CompiledTransformer
from sumformer.nn.pretrained import PretrainedModule
from sumformer.nn.sparse_feed_forward import SparseFeedForward
from sumformer.nn.zero import Zero
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.compile.assembly import Assembly, BlockWeights, Sparse
from sumformer.theorems.alberti_2023.compile.layout import ONE
from sumformer.theorems.alberti_2023.compile.ledger import attention_places, ledger_of
from sumformer.theorems.alberti_2023.compile.mean_head import Head
from sumformer.theorems.alberti_2023.compile.realise import Realised, place


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
    return CompiledTransformer(read_in, blocks, read_out, ideal, ledger_of(assembly, realised, box, errors, tokens))


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
