"""A multiset of cells, (cell, how often): the cells that occur, found in Σ ∈ ℝ^K, row by row of a batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sumformer.kernels.calling import transformed


@dataclass(frozen=True)
class CellCounts:
    """`cells` (batch, U) and `counts` (batch, U), each cell of a row once; where a row has fewer, counts of 0.

    `place` (batch, K): where a cell stands in its row; None where all K do, in order.
    """

    cells: Tensor
    counts: Tensor
    place: Tensor | None

    @staticmethod
    def of(total: Tensor) -> CellCounts:
        """Of Σ (batch, K); all K cells where values are unknown: to a compiler, a transform, a graph being captured."""
        batch, size = total.shape
        captured = total.is_cuda and torch.cuda.is_current_stream_capturing()
        if torch.compiler.is_compiling() or transformed() or captured:
            return CellCounts(torch.arange(size, device=total.device).expand(batch, size), total, None)
        row, cell = (total != 0).nonzero(as_tuple=True)
        each = torch.bincount(row, minlength=batch)
        first = each.cumsum(0) - each
        at = torch.arange(len(row), device=row.device) - first[row]
        most = max(1, int(each.max())) if batch else 1
        cells, counts = cell.new_zeros(batch, most), total.new_zeros(batch, most)
        place = cell.new_zeros(batch, size)
        cells[row, at], counts[row, at], place[row, cell] = cell, total[row, cell], at
        return CellCounts(cells, counts, place)

    def find(self, cell: Tensor) -> Tensor:
        """Where each of the cells (batch, n) stands in its row."""
        return cell if self.place is None else self.place.gather(1, cell)
