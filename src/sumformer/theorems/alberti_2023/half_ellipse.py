"""{z ∈ E_ρ : Im z ≥ 0} × [−1, 1]^k in boxes lo ≤ · ≤ hi, whose first two columns are Re z and Im z.

Or what differences of such z and t ∈ [−1, 1] fill: {z ∈ E_ρ + [−1, 1] : Im z ≥ 0} × [−2, 2]^k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sumformer.algebra.rounding import FloatArray

SLACK = 32.0  # boxes are bisected until the bound is within this factor of an attained value: only log M matters
_COLUMNS, _ROWS = 8, 4


@dataclass(frozen=True)
class HalfEllipse:
    """E_ρ: half axes a = (ρ + 1/ρ)/2 and b = (ρ − 1/ρ)/2, both rounded up; `spread`: 1 for differences, else 0."""

    rho: float
    spread: float = 0.0

    @property
    def a(self) -> float:
        return (self.rho + 1 / self.rho) / 2 * (1 + 1e-15)

    @property
    def b(self) -> float:
        return (self.rho - 1 / self.rho) / 2 * (1 + 1e-15)

    def cover(self, others: int) -> tuple[FloatArray, FloatArray]:
        """Rectangles over the upper half of the bounding box; the `others` span their real intervals."""
        end = self.a + self.spread
        re, im = np.linspace(-end, end, _COLUMNS + 1), np.linspace(0.0, self.b, _ROWS + 1)
        left, bottom = (g.ravel() for g in np.meshgrid(re[:-1], im[:-1], indexing="ij"))
        right, top = (g.ravel() for g in np.meshgrid(re[1:], im[1:], indexing="ij"))
        ends = np.full((left.size, others), 1.0 + self.spread)
        return np.column_stack([left, bottom, -ends]), np.column_stack([right, top, ends])

    def meets(self, lo: FloatArray, hi: FloatArray) -> NDArray[np.bool_]:
        """Which boxes have a point in the set, with a little room."""
        nearest = np.maximum(np.maximum(lo[:, 0], -hi[:, 0]) - self.spread, 0)
        return np.asarray((nearest / self.a) ** 2 + (lo[:, 1] / self.b) ** 2 <= 1 + 1e-9)

    def widths(self, lo: FloatArray, hi: FloatArray) -> FloatArray:
        """Of every side, as a share of that side in the cover."""
        real = [2 * (1 + self.spread)] * (lo.shape[1] - 2)
        return np.asarray((hi - lo) / np.array([2 * (self.a + self.spread) / _COLUMNS, self.b / _ROWS, *real]))


def bisect(lo: FloatArray, hi: FloatArray, side: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
    """Each box in two, across `side`."""
    rows = np.arange(len(lo))
    middle = (lo[rows, side] + hi[rows, side]) / 2
    first, second = hi.copy(), lo.copy()
    first[rows, side] = middle
    second[rows, side] = middle
    return np.concatenate([lo, second]), np.concatenate([first, hi])
