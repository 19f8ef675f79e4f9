"""Sums of rows by the cell that each belongs to, in an order that does not change from run to run."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

LONGEST = 256  # rows of a run


@dataclass(frozen=True)
class Cells:
    """Which of `size` cells each row belongs to. On a GPU, where adding in place races, rows are sorted by cell and
    added in runs of at most LONGEST, the runs of a cell after that.
    """

    index: Tensor
    size: int
    order: Tensor | None = None
    runs: Tensor | None = None

    @staticmethod
    def of(index: Tensor, size: int) -> Cells:
        return Cells.sorted(index, size) if index.is_cuda else Cells(index, size)

    @staticmethod
    def sorted(index: Tensor, size: int) -> Cells:
        order = index.argsort(stable=True)
        edges = torch.searchsorted(index[order], torch.arange(size + 1, device=index.device))
        marks = torch.arange(LONGEST, max(LONGEST, index.shape[0]), LONGEST, device=index.device)
        runs, came_from = torch.cat([marks, edges]).sort(stable=True)
        return Cells(came_from.argsort()[marks.shape[0] :], size, order, runs)  # a cell begins where its edge went

    def sums(self, rows: Tensor) -> Tensor:
        """(n, R) → (size, R), in an order that does not change from run to run."""
        if self.order is None or self.runs is None:
            return rows.new_zeros(self.size, rows.shape[1]).index_add(0, self.index, rows)
        of_runs = torch.segment_reduce(rows[self.order], "sum", offsets=self.runs, axis=0, unsafe=True)
        return torch.segment_reduce(of_runs, "sum", offsets=self.index, axis=0, unsafe=True)
