"""Masses and values of tokens that meet many nodes, as matrix products.

All axes of a mesh but the last are cut into blocks of SIDE intervals. The tokens of one block, up to RUN at a time, are
rows of two matrices, A: their weights Π ℓ on the T nodes that the block meets on those axes, and B: v ℓ on the last
axis. AᵀB are their masses, and A times the block's nodes, summed with ℓ on the last axis, their values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from sumformer.nn.mesh import Mesh

SIDE = 8
RUN = 128
HELD = 2**23  # numbers of a matrix


@dataclass(frozen=True)
class Blocks:
    """Rows are tokens of all sequences, and one more of weights 0 that fills the runs."""

    nodes: tuple[int, ...]
    outer: Tensor  # (rows, T): Π ℓ, place by place
    inner: Tensor  # (rows, G_k): ℓ on the last axis
    runs: Tensor  # (runs, RUN or fewer): rows of one block
    lines: Tensor  # (runs, T): their nodes on all axes but the last, of all sequences

    @staticmethod
    def of(meshes: Sequence[Mesh], intervals: Sequence[Tensor], weights: Sequence[Tensor]) -> Blocks:
        """Intervals (batch, n) and weights (batch, n, w) on each mesh."""
        batch, n = intervals[0].shape
        device, count = intervals[0].device, batch * n
        nodes = tuple(mesh.nodes for mesh in meshes)
        block = torch.arange(batch, device=device).repeat_interleave(n)
        outer = weights[0].new_ones(count, 1)
        for mesh, interval, weight in zip(meshes[:-1], intervals, weights, strict=False):
            of_mesh, within = interval.flatten() // SIDE, interval.flatten() % SIDE
            block = block * -(-mesh.intervals // SIDE) + of_mesh
            outer = (outer.unsqueeze(-1) * _spread(weight, within, SIDE + mesh.width - 1).unsqueeze(1)).flatten(1)
        inner = _spread(weights[-1], intervals[-1].flatten(), nodes[-1])
        runs, blocks = _runs(block)
        empty = [torch.cat([rows, rows.new_zeros(1, rows.shape[1])]) for rows in (outer, inner)]
        return Blocks(nodes, empty[0], empty[1], runs, _lines(meshes[:-1], blocks))

    def masses(self, values: Tensor) -> Tensor:
        """values (batch, n, S) → (batch, nodes…, S)."""
        batch, _, series = values.shape
        rows = torch.cat([values.flatten(0, 1), values.new_zeros(1, series)])
        total = values.new_zeros(batch * prod(self.nodes[:-1]), self.nodes[-1] * series)
        for piece in self._pieces(series):
            run = self.runs[piece]
            right = (self.inner[run].unsqueeze(-1) * rows[run].unsqueeze(-2)).flatten(2)
            total = total.index_add(0, self.lines[piece].flatten(), (self.outer[run].mT @ right).flatten(0, 1))
        return total.reshape(batch, *self.nodes, series)

    def values(self, q: Tensor, n: int) -> Tensor:
        """q (batch, nodes…, S) → (batch, n, S)."""
        batch, series = q.shape[0], q.shape[-1]
        lines, out = q.reshape(-1, self.nodes[-1] * series), []
        for piece in self._pieces(series):
            run, places = self.runs[piece], self.lines[piece]
            near = lines[places.flatten()].reshape(*places.shape, -1)
            found = torch.unflatten(self.outer[run] @ near, -1, (self.nodes[-1], series))
            out.append((found * self.inner[run].unsqueeze(-1)).sum(-2).flatten(0, 1))
        total = q.new_zeros(batch * n + 1, series)
        return torch.unflatten(total.index_add(0, self.runs.flatten(), torch.cat(out))[:-1], 0, (batch, n))

    def _pieces(self, series: int) -> Iterator[slice]:
        line = self.nodes[-1] * series
        largest = max(self.lines.shape[1] * line, self.runs.shape[1] * max(line, self.lines.shape[1]))
        some = max(1, HELD // largest)
        return (slice(first, first + some) for first in range(0, len(self.runs), some))


def _spread(weights: Tensor, first: Tensor, size: int) -> Tensor:
    """(batch, n, w) → (batch · n, size), from `first` on, 0 elsewhere."""
    rows = weights.flatten(0, 1)
    places = first.unsqueeze(1) + torch.arange(rows.shape[1], device=rows.device)
    return rows.new_zeros(rows.shape[0], size).scatter(1, places, rows)


def _runs(block: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of one block side by side, filled up with one more row; and the block of each run."""
    order = block.argsort(stable=True)
    blocks, counts = torch.unique(block, return_counts=True)  # in order
    size = min(RUN, max(1, len(block) // len(blocks)))
    needed = (counts + size - 1) // size
    first = needed.cumsum(0) - needed
    begins = (counts.cumsum(0) - counts).repeat_interleave(counts)
    place = torch.arange(len(block), device=block.device) - begins
    runs = block.new_full((int(needed.sum()) * size,), len(block))
    runs[first.repeat_interleave(counts) * size + place] = order
    return runs.reshape(-1, size), blocks.repeat_interleave(needed)


def _lines(meshes: Sequence[Mesh], blocks: Tensor) -> Tensor:
    """(runs,) → (runs, T): nodes on these meshes, row by row; beyond the last node there are only weights 0."""
    sides = [-(-mesh.intervals // SIDE) for mesh in meshes]
    lines = (blocks // prod(sides)).unsqueeze(1)
    for c, mesh in enumerate(meshes):
        first = blocks // prod(sides[c + 1 :]) % sides[c] * SIDE
        places = first.unsqueeze(1) + torch.arange(SIDE + mesh.width - 1, device=blocks.device)
        places = places.clamp(max=mesh.nodes - 1)
        lines = (lines.unsqueeze(-1) * mesh.nodes + places.unsqueeze(1)).flatten(1)
    return lines
