"""Between tokens and the nodes of a product of meshes: masses m_j = Σ_k v_k Π_c ℓ_{j_c}(x_k), values
Σ_j Π_c ℓ_{j_c}(x) q_j.

A token meets w^k nodes. They are taken stencil place by stencil place, all tokens at once; where they are many, by
blocks of the mesh (`mesh_blocks.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as cartesian
from math import prod

import torch
from torch import Tensor

from sumformer.nn.mesh import Mesh
from sumformer.nn.mesh_blocks import Blocks
from sumformer.nn.mesh_cells import Cells

MANY = 32  # places of a stencil on all axes but the last


@dataclass(frozen=True)
class Places:
    """Where tokens lie on each mesh: intervals (batch, n), weights (batch, n, w)."""

    meshes: Sequence[Mesh]
    intervals: Sequence[Tensor]
    weights: Sequence[Tensor]

    @staticmethod
    def of(t: Tensor, meshes: Sequence[Mesh], coordinates: Sequence[int]) -> Places:
        """Of t (batch, n, d) ∈ [−1, 1]^d."""
        placed = [mesh.place(t[..., c]) for mesh, c in zip(meshes, coordinates, strict=True)]
        return Places(meshes, [i for i, _ in placed], [w for _, w in placed])

    def masses(self, values: Tensor) -> Tensor:
        """values (batch, n, S) → (batch, nodes…, S)."""
        if self._meet_many(values):
            return Blocks.of(self.meshes, self.intervals, self.weights).masses(values)
        few = values.shape[1] < prod([mesh.intervals for mesh in self.meshes])
        return self._masses_by_token(values) if few and not values.is_cuda else self._masses_by_interval(values)

    def added(self, values: Tensor, belongs: Tensor, sums: int) -> Tensor:
        """values (batch, n, S), each of the sum it belongs to (batch, n) → (sums, nodes…, S).

        For a compiler, which writes no numbers for all nodes of all tokens but adds them where they are wanted.
        """
        nodes = [mesh.nodes for mesh in self.meshes]
        index, weights = self._everywhere(nodes, belongs)
        rows = values.flatten(0, 1).unsqueeze(1)
        rows = (rows if weights is None else rows * weights.unsqueeze(-1)).flatten(0, 1)
        total = values.new_zeros(sums * prod(nodes), values.shape[2])
        total = total.scatter_add(0, index.reshape(-1, 1).expand_as(rows), rows)  # index_add races in onnxruntime
        return total.reshape(sums, *nodes, values.shape[2])

    def _masses_by_token(self, values: Tensor) -> Tensor:
        """Every token to its w^k nodes: for meshes with more intervals than tokens."""
        nodes, last = [mesh.nodes for mesh in self.meshes], self.meshes[-1]
        total = values.new_zeros(values.shape[0] * prod(nodes), values.shape[2])
        rows, node = values.flatten(0, 1), self._index([0] * len(nodes), nodes)
        for place, factor in self._stencil():
            row = rows if factor is None else rows * factor
            first = node + sum([a * prod(nodes[c + 1 :]) for c, a in enumerate(place)])
            for a in range(last.width):
                total.index_add_(0, first + a, row * self.weights[-1][..., a].reshape(-1, 1))
        return total.reshape(values.shape[0], *nodes, values.shape[2])

    def _masses_by_interval(self, values: Tensor) -> Tensor:
        """Tokens of one interval are added first, then intervals are laid over each other."""
        batch, series = values.shape[0], values.shape[2]
        counts, last = [mesh.intervals for mesh in self.meshes], self.meshes[-1]
        cells = Cells.of(self._index([0] * len(counts), counts), batch * prod(counts))
        row = (self.weights[-1].unsqueeze(-1) * values.unsqueeze(-2)).flatten(0, 1).flatten(1)
        total = values.new_zeros(batch, *[mesh.nodes for mesh in self.meshes], series)
        for place, factor in self._stencil():
            sums = cells.sums(row if factor is None else row * factor)
            sums = sums.reshape(batch, *counts, last.width, series)
            outer = [slice(a, a + m) for a, m in zip(place, counts, strict=False)]
            for a in range(last.width):
                total[(slice(None), *outer, slice(a, a + last.intervals))] += sums[..., a, :]
        return total

    def values(self, q: Tensor) -> Tensor:
        """q (batch, nodes…, S) → (batch, n, S)."""
        batch, n = self.intervals[0].shape
        if torch.compiler.is_compiling():
            sequences = torch.arange(batch, device=q.device).unsqueeze(1)
            index, weights = self._everywhere([mesh.nodes for mesh in self.meshes], sequences)
            if weights is None:
                raise AssertionError("a product has meshes")
            found = q.flatten(0, len(self.meshes)).index_select(0, index.flatten())
            found = torch.unflatten(found, 0, index.shape) * weights.unsqueeze(-1)
            return torch.unflatten(found.sum(1), 0, (batch, n))
        if self._meet_many(q):
            return Blocks.of(self.meshes, self.intervals, self.weights).values(q, n)
        last = self.meshes[-1]
        rows = q.unfold(len(self.meshes), last.width, 1).flatten(0, len(self.meshes)).contiguous()  # (…, S, w)
        nodes = [mesh.nodes for mesh in self.meshes[:-1]]
        total: Tensor | None = None
        for place, factor in self._stencil():
            found = rows.index_select(0, self._index([*place, 0], [*nodes, last.intervals]))
            found = found if factor is None else found * factor.unsqueeze(-1)
            total = found if total is None else total + found
        if total is None:
            raise AssertionError("a stencil has places")
        return torch.unflatten((total * self.weights[-1].flatten(0, 1).unsqueeze(1)).sum(-1), 0, (batch, n))

    def _meet_many(self, values: Tensor) -> bool:
        return prod([mesh.width for mesh in self.meshes[:-1]]) >= MANY and values.numel() > 0

    def _everywhere(self, nodes: Sequence[int], first: Tensor) -> tuple[Tensor, Tensor | None]:
        """The w^k nodes of every token and its weights there, (batch · n, w^k) each; `first` as in `_index`."""
        index, weights = self._index([0] * len(nodes), nodes, first).unsqueeze(1), None
        for c, (mesh, weight) in enumerate(zip(self.meshes, self.weights, strict=True)):
            places = torch.arange(mesh.width, device=index.device) * prod(nodes[c + 1 :])
            index = (index.unsqueeze(-1) + places).flatten(1)
            column = weight.flatten(0, 1)
            weights = column if weights is None else (weights.unsqueeze(-1) * column.unsqueeze(1)).flatten(1)
        return index, weights

    def _stencil(self) -> list[tuple[tuple[int, ...], Tensor | None]]:
        """Places in the stencil of all meshes but the last, and Π ℓ there, (batch · n, 1)."""
        out: list[tuple[tuple[int, ...], Tensor | None]] = []
        for place in cartesian(*[range(mesh.width) for mesh in self.meshes[:-1]]):
            factor: Tensor | None = None
            for weights, a in zip(self.weights, place, strict=False):
                column = weights[..., a].reshape(-1, 1)
                factor = column if factor is None else factor * column
            out.append((place, factor))
        return out

    def _index(self, place: Sequence[int], sizes: Sequence[int], first: Tensor | None = None) -> Tensor:
        """Row by row, the place of (first, i_1 + a_1, …, i_k + a_k) in a tensor of `sizes`; first is the sequence."""
        index = first
        if index is None:
            index = torch.arange(self.intervals[0].shape[0], device=self.intervals[0].device).unsqueeze(1)
        for interval, a, size in zip(self.intervals, place, sizes, strict=True):
            index = index * size + (interval + a)
        return index.flatten()
