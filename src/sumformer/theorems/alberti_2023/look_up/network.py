"""x → cell → code → mean → table entry: the three staircases, the head, and the stream's coordinates by name."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import torch
from torch import nn

from sumformer.algebra.rounding import FloatArray
from sumformer.nn.block import Block
from sumformer.nn.look_up_transformer import LookUpTransformer
from sumformer.nn.zero import Zero
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.compile.mean_head import Head
from sumformer.theorems.alberti_2023.look_up.staircase import Staircase
from sumformer.theorems.alberti_2023.look_up.table import Table

WHOLE = 0.5  # ramps between whole numbers


def look_up_network(
    f: Target, per_axis: int, table: Table, head: Head, activation: str, ramps: Sequence[float]
) -> LookUpTransformer:
    """`ramps`: their width along each coordinate, a power of two, for ReLU."""
    d, n, outputs = f.d, f.tokens.maximum, f.width
    cell, code, mean = d, d + 1, d + 2
    out = list(range(d + 3, d + 3 + outputs))
    stairs = (
        _cell(f, per_axis, cell, ramps),
        _code(table.code, cell, code),
        _entry(table, n, cell, mean, out),
    )
    width = d + 3 + outputs + (sum(map(len, stairs)) if activation == "relu" else 0)
    blocks: list[nn.Module] = []
    workspace = d + 3 + outputs
    for k, stair in enumerate(stairs):
        for j, layer in enumerate(stair.blocks(width, activation, workspace)):
            blocks.append(Block(head(width, [code], [mean]) if (k, j) == (2, 0) else Zero(), layer))
        workspace += len(stair)
    read_in = nn.Linear(d, width, dtype=torch.float64)
    read_out = nn.Linear(width, outputs, bias=False, dtype=torch.float64)
    with torch.no_grad():
        for parameter in (*read_in.parameters(), *read_out.parameters()):
            parameter.zero_()
        read_in.weight[range(d), range(d)] = 1.0
        read_out.weight[range(outputs), out] = 1.0
    layout = {"x": list(range(d)), "cell": cell, "code": code, "mean": mean, "out": out}
    return LookUpTransformer(read_in, blocks, read_out, n, layout, activation).eval().requires_grad_(False)


def _cell(f: Target, per_axis: int, cell: int, ramps: Sequence[float]) -> Staircase:
    """q = Σ_c k^{d−1−c} · #{edges ≤ x_c}."""
    edges = [
        float(low + (high - low) * Fraction(k, per_axis))
        for low, high in zip(f.box.lower, f.box.upper, strict=True)
        for k in range(1, per_axis)
    ]
    coordinate = np.repeat(np.arange(f.d), per_axis - 1)
    reads = [{int(c): 1.0} for c in coordinate]
    steps = np.array([float(per_axis ** (f.d - 1 - int(c))) for c in coordinate], dtype=np.float64)
    widths = np.repeat(np.array(ramps, dtype=np.float64), per_axis - 1)
    return Staircase(reads, np.array(edges, dtype=np.float64), {cell: steps}, {cell: 0.0}, widths)


def _code(code: Sequence[int], cell: int, at: int) -> Staircase:
    """φ(q), by its differences, at thresholds q = k − ½, none where nothing changes: for one token φ = 0."""
    phi = np.array(code, dtype=np.float64)
    changes = np.diff(phi)
    half: FloatArray = np.arange(1, len(code)) - np.float64(0.5)
    kept = changes != 0
    return _between(half[kept], {cell: 1.0}, {at: changes[kept]}, {at: float(phi[0])})


def _entry(table: Table, n: int, cell: int, mean: int, out: Sequence[int]) -> Staircase:
    """The entry with key A·q + n·mean: thresholds half way between keys, none where nothing changes."""
    changes = np.diff(table.values, axis=0)
    kept = (changes != 0).any(1)
    half = (table.keys[:-1] + table.keys[1:])[kept] / 2
    steps = {c: changes[kept, w] for w, c in enumerate(out)}
    start = {c: float(table.values[0, w]) for w, c in enumerate(out)}
    return _between(half, {cell: float(table.stride), mean: float(n)}, steps, start)


def _between(
    thresholds: FloatArray, reads: dict[int, float], steps: dict[int, FloatArray], start: dict[int, float]
) -> Staircase:
    count = len(thresholds)
    return Staircase([reads] * count, thresholds, steps, start, np.full(count, WHOLE))
