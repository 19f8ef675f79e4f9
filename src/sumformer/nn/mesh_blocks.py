"""Masses and values of tokens as matrix products, block of a mesh by block.

Every axis is cut into blocks of SIDE intervals, the last into blocks of LAST; a block meets T = side + w − 1 nodes of
an axis. The tokens of one block, up to RUN at a time, are rows of two matrices, A: their weights Π ℓ on its nodes of
all axes but the last, and B: v ℓ on those of the last. AᵀB are their masses, and A times the block's nodes, summed with
ℓ on the last axis, their values. Blocks overlap: what they have in common is added axis by axis. The masses of all
blocks are held at a time, up to ten times the mesh.

On a GPU no shape depends on where the tokens are, so that graphs can be captured, and all is added in a fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from sumformer.kernels.calling import transformed
from sumformer.nn.mesh import Mesh
from sumformer.nn.mesh_cells import Cells

SIDE, LAST = 8, 16
RUN = 128
HELD, ON_GPU = 2**21, 2**26  # numbers of a matrix


@dataclass(frozen=True)
class Blocks:
    """Rows are tokens of all sequences, and one more of weights 0 that fills the runs."""

    meshes: Sequence[Mesh]
    batch: int
    weights: Sequence[Tensor]  # of each axis (rows, w)
    within: Sequence[Tensor]  # of each axis (rows,): the interval, counted from the first of its block
    runs: Tensor  # (runs, RUN or fewer): rows of one block
    block: Tensor  # (runs,): which, row by row, those of one sequence after those of the one before
    place: Tensor  # (batch · n,): where in `runs` a token stands

    @staticmethod
    def of(meshes: Sequence[Mesh], intervals: Sequence[Tensor], weights: Sequence[Tensor]) -> Blocks:
        """Intervals (batch, n) and weights (batch, n, w) on each mesh."""
        batch, n = intervals[0].shape
        block = torch.arange(batch, device=intervals[0].device).repeat_interleave(n)
        within = []
        for interval, side, count in zip(intervals, _sides(meshes), _counts(meshes), strict=True):
            block = block * count + interval.flatten() // side
            within.append(torch.cat([interval.flatten() % side, interval.new_zeros(1)]))
        rows = [torch.cat([weight.flatten(0, 1), weight.new_zeros(1, weight.shape[2])]) for weight in weights]
        return Blocks(meshes, batch, rows, within, *_runs(block, batch * prod(_counts(meshes))))

    def masses(self, values: Tensor) -> Tensor:
        """values (batch, n, S) → (batch, nodes…, S)."""
        series, counts, met = values.shape[2], _counts(self.meshes), self._met
        rows = torch.cat([values.flatten(0, 1), values.new_zeros(1, series)])
        total = values.new_zeros(self.batch * prod(counts), prod(met) * series)
        for piece in self._pieces(series):
            outer, inner = self._matrices(self.runs[piece])
            right = (rows[self.runs[piece]].unsqueeze(-1) * inner.unsqueeze(-2)).flatten(2)
            found, cells = (outer.mT @ right).flatten(1), Cells.of(self.block[piece], len(total))
            total = total + cells.sums(found) if found.is_cuda else total.index_add_(0, cells.index, found)
        # (batch · blocks, T_1, …, T_{k−1}, S, T_k) → (batch, blocks…, T…, S)
        split = total.reshape(self.batch, *counts, *met[:-1], series, met[-1]).movedim(-1, -2)
        for axis, (mesh, side) in enumerate(zip(self.meshes, _sides(self.meshes), strict=True), 1):
            split = _added_up(split, axis, axis + len(met), side).narrow(axis, 0, mesh.nodes)
            split = split.unsqueeze(axis + len(met))  # T_axis is used up
        return split.reshape(self.batch, *[mesh.nodes for mesh in self.meshes], series)

    def values(self, q: Tensor, n: int) -> Tensor:
        """q (batch, nodes…, S) → (batch, n, S)."""
        series, counts, met = q.shape[-1], _counts(self.meshes), self._met
        view = q
        for axis, (side, count, nodes) in enumerate(zip(_sides(self.meshes), counts, met, strict=True), 1):
            missing = (count - 1) * side + nodes - q.shape[axis]
            view = torch.nn.functional.pad(view, [0, 0] * (view.dim() - 1 - axis) + [0, max(0, missing)])
            view = view.unfold(axis, nodes, side)
        out = []  # view: (batch, blocks…, S, T…)
        for piece in self._pieces(series):
            outer, inner = self._matrices(self.runs[piece])
            near = view[_places(self.block[piece], (self.batch, *counts))]
            near = near.reshape(len(near), series, -1, met[-1]).transpose(1, 2).flatten(2)
            found = torch.unflatten(outer @ near, -1, (series, met[-1]))
            out.append((found * inner.unsqueeze(-2)).sum(-1).flatten(0, 1))
        return torch.unflatten(torch.cat(out).index_select(0, self.place), 0, (self.batch, n))

    @property
    def _met(self) -> list[int]:
        """T for each axis."""
        return [side + mesh.width - 1 for side, mesh in zip(_sides(self.meshes), self.meshes, strict=True)]

    def _matrices(self, run: Tensor) -> tuple[Tensor, Tensor]:
        """Of some runs: Π ℓ, (…, T_1 ⋯ T_{k−1}), place by place, and ℓ on the last axis, (…, T_k)."""
        outer = self.weights[0].new_ones(*run.shape, 1)
        for axis, nodes in enumerate(self._met[:-1]):
            outer = (outer.unsqueeze(-1) * self._spread(run, axis, nodes).unsqueeze(-2)).flatten(-2)
        return outer, self._spread(run, len(self._met) - 1, self._met[-1])

    def _spread(self, run: Tensor, axis: int, size: int) -> Tensor:
        """(…, w) → (…, size), from the token's interval on, 0 elsewhere."""
        rows = self.weights[axis][run]
        places = self.within[axis][run].unsqueeze(-1) + torch.arange(rows.shape[-1], device=run.device)
        return rows.new_zeros(*run.shape, size).scatter(-1, places, rows)

    def _pieces(self, series: int) -> Iterator[slice]:
        outer, inner = prod(self._met[:-1]), self._met[-1] * series
        held = ON_GPU if self.runs.is_cuda else HELD
        some = max(1, held // max(outer * inner, self.runs.shape[1] * max(outer, inner)))
        return (slice(first, first + some) for first in range(0, len(self.runs), some))


def _sides(meshes: Sequence[Mesh]) -> list[int]:
    """Intervals of a block along each axis."""
    longest = [SIDE] * (len(meshes) - 1) + [LAST]
    return [min(side, mesh.intervals) for side, mesh in zip(longest, meshes, strict=True)]


def _counts(meshes: Sequence[Mesh]) -> list[int]:
    """Blocks along each axis."""
    return [-(-mesh.intervals // side) for mesh, side in zip(meshes, _sides(meshes), strict=True)]


def _runs(block: Tensor, blocks: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of one block side by side, filled up with one more row; the block of each run; where each row went."""
    tokens = len(block)
    size = min(RUN, max(1, tokens // blocks))
    counts = _histogram(block, blocks)
    ends = ((counts + size - 1) // size).cumsum(0)  # of the runs of a block
    fixed = block.is_cuda or transformed()
    count = tokens // size + blocks if fixed else int(ends[-1])  # at most, or as it is
    of_run = _histogram(ends, count + 1).cumsum(0)[:count].clamp(max=blocks - 1)
    order = block.argsort(stable=True)
    apart = torch.cat([ends.new_zeros(1), ends[:-1]]) * size - (counts.cumsum(0) - counts)
    slots = torch.arange(tokens, device=block.device) + apart[block[order]]
    runs = block.new_full((count * size,), tokens).scatter(0, slots, order)
    return runs.reshape(count, size), of_run, torch.empty_like(order).scatter(0, order, slots)


def _histogram(index: Tensor, size: int) -> Tensor:
    return index.new_zeros(size).scatter_add(0, index, torch.ones_like(index))


def _places(index: Tensor, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    """Row by row, the place on each axis."""
    return tuple(index // prod(sizes[axis + 1 :]) % size for axis, size in enumerate(sizes))


def _added_up(split: Tensor, axis: int, within: int, side: int) -> Tensor:
    """(… blocks … T …) → (… nodes …) with `within` gone: node j of block b is node side · b + j."""
    nodes, blocks = split.shape[within], split.shape[axis]
    reached = -(-nodes // side)
    fill = [0, 0] * (split.dim() - 1 - within) + [0, reached * side - nodes]
    parts = torch.unflatten(torch.nn.functional.pad(split, fill), within, (reached, side))
    parts = parts.movedim((within, within + 1), (0, axis + 2))
    total = parts.new_zeros(*parts.shape[1 : axis + 1], blocks + reached - 1, *parts.shape[axis + 2 :])
    for j, part in enumerate(parts):
        total.narrow(axis, j, blocks).add_(part)
    return total.flatten(axis, axis + 1)
