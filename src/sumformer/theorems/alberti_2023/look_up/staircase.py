"""b + Σ_i w_i s_i(z), s_i(z) = [r_i·z ≥ θ_i], as one block of steps, or by ReLU as two, exact off ramps around θ_i."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from sumformer.algebra.rounding import FloatArray
from sumformer.nn.sparse_feed_forward import SparseFeedForward
from sumformer.nn.sparse_step_feed_forward import SparseStepFeedForward

Weights = Sequence[tuple[int, int, float]]
"""(row, column, weight) of a matrix."""


@dataclass(frozen=True, eq=False)
class Staircase:
    """Step i reads r_i = reads[i], {coordinate: weight}; `steps[c]` are its heights at coordinate c, from `start[c]`.

    `ramps` (one for each step): the width of the ramp of its ReLU form.
    """

    reads: Sequence[Mapping[int, float]]
    thresholds: FloatArray
    steps: Mapping[int, FloatArray]
    start: Mapping[int, float]
    ramps: FloatArray

    def __len__(self) -> int:
        return len(self.reads)

    def blocks(self, width: int, activation: str, workspace: int) -> list[SparseFeedForward]:
        """The feed-forward layers; coordinates from `workspace` on hold the ramps."""
        units = range(len(self))
        writes = [(c, i, float(w[i])) for c, w in self.steps.items() for i in units]
        if activation == "step":
            one = [(i, c, w) for i in units for c, w in self.reads[i].items()]
            layer = SparseStepFeedForward(width, max(1, len(self)), len(one), len(writes)).double()
            return [_fill(layer, one, -self.thresholds, writes, self.start)]
        one = [(i, c, w / self.ramps[i]) for i in units for c, w in self.reads[i].items()]
        places = [(workspace + i, i, 1.0) for i in units]
        end = {c: float(self.start[c] + w.sum()) for c, w in self.steps.items()}
        first, second = (SparseFeedForward(width, max(1, len(self)), *sizes).double() for sizes in self._sizes(one))
        _fill(first, one, 0.5 - self.thresholds / self.ramps, places, {})
        back = [(i, workspace + i, -1.0) for i in units]
        _fill(second, back, np.ones(len(self)), [(c, i, -w) for c, i, w in writes], end)
        return [first, second]

    def _sizes(self, one: Weights) -> tuple[tuple[int, int], tuple[int, int]]:
        return (len(one), len(self)), (len(self), len(self) * len(self.steps))


def _fill(
    layer: SparseFeedForward, one: Weights, b_1: FloatArray, two: Weights, b_2: Mapping[int, float]
) -> SparseFeedForward:
    with torch.no_grad():
        for i, entries in ((1, one), (2, two)):
            ordered = sorted(entries)
            places = torch.tensor([[r for r, _, _ in ordered], [c for _, c, _ in ordered]], dtype=torch.int32)
            getattr(layer, f"place_{i}").copy_(places.reshape(2, -1))
            getattr(layer, f"value_{i}").copy_(torch.tensor([w for _, _, w in ordered], dtype=torch.float64))
        layer.b_1[: len(b_1)].copy_(torch.from_numpy(b_1))
        for c, value in b_2.items():
            layer.b_2[c] = value
    return layer
