"""T data sets (T, N, n, d) as an ensemble sees them:  (X − mean)/deviation  of every coordinate, or as they are."""

from __future__ import annotations

import torch
from torch import Tensor


class StandardData:
    """Shared by all members and only read."""

    def __init__(self, X: Tensor, Y: Tensor, standardise: bool) -> None:
        scaling = _standard if standardise else _nothing
        self.shift, self.scale = scaling(X)
        self.y_shift, self.y_scale = scaling(Y)
        self.X, self.Y = (X - self.shift) / self.scale, (Y - self.y_shift) / self.y_scale
        self._flat = self.X.flatten(0, 1), self.Y.flatten(0, 1)

    def rows(self, rows: Tensor, members: int) -> tuple[Tensor, Tensor]:
        """Sequences number `rows` of all data sets one after the other, as (members, batch, n, d) and (…, d_out)."""
        X, Y = (part.index_select(0, rows).view(members, -1, *part.shape[1:]) for part in self._flat)
        return X, Y

    def inputs(self, X: Tensor, which: Tensor) -> Tensor:
        """Raw inputs of data sets `which`, standardised."""
        return (X - self.shift[which]) / self.scale[which]

    def outputs(self, Y: Tensor, which: Tensor) -> Tensor:
        """The inverse for outputs."""
        return Y * self.y_scale[which] + self.y_shift[which]


def _standard(part: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation of every coordinate of every data set; padding has deviation 0 and stays as it is."""
    mean, deviation = part.mean((1, 2), keepdim=True), part.std((1, 2), keepdim=True)
    return mean, torch.where(deviation > 0, deviation, 1.0)


def _nothing(part: Tensor) -> tuple[Tensor, Tensor]:
    shape = (part.shape[0], 1, 1, part.shape[3])
    return part.new_zeros(shape), part.new_ones(shape)
