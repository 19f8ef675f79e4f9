"""sup |k^(w)|/w! ≤ M_c(δ)/δ^w (Cauchy), M_c(δ) = sup |k| with z_c within δ of the real differences, the others real.

A kernel of differences k(x − y) on a mesh meets all differences of its nodes, |z_b| ≤ D_b, some of them outside of the
box. The discs of radius δ around |z_c| ≤ D_c lie in the rectangle |Re z_c| ≤ D_c + δ, |Im z_c| ≤ δ, whose upper half is
enough, and is covered by rectangles as the ellipses are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sumformer.algebra.rounding import FloatArray
from sumformer.targets import Node
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.ellipse import Region, enclosed_maximum

SLACK = 1.5  # M enters the mesh's size by its w-th root
ROUNDS, PROBES = 60, 64  # bisections of one side each
_COLUMNS, _ROWS = 16, 4


@dataclass(frozen=True)
class HalfStrip:
    """{|Re z| ≤ end, 0 ≤ Im z ≤ reach} × Π [−D_b, D_b], all in units of the box's radii."""

    end: float
    reach: float
    others: tuple[float, ...]

    def cover(self, others: int) -> tuple[FloatArray, FloatArray]:
        re, im = np.linspace(-self.end, self.end, _COLUMNS + 1), np.linspace(0.0, self.reach, _ROWS + 1)
        left, bottom = (g.ravel() for g in np.meshgrid(re[:-1], im[:-1], indexing="ij"))
        right, top = (g.ravel() for g in np.meshgrid(re[1:], im[1:], indexing="ij"))
        ends = np.broadcast_to(np.array(self.others), (left.size, others))
        return np.column_stack([left, bottom, -ends]), np.column_stack([right, top, ends])

    def meets(self, lo: FloatArray, hi: FloatArray) -> NDArray[np.bool_]:
        return np.ones(len(lo), dtype=np.bool_)

    def widths(self, lo: FloatArray, hi: FloatArray) -> FloatArray:
        """Of every side, as a share of that side in the cover."""
        sides = [2 * self.end / _COLUMNS, self.reach / _ROWS, *(2 * end for end in self.others)]
        return np.asarray((hi - lo) / np.array(sides))


def strip_maximum(kernel: Node, box: Box, variable: int, ends: tuple[float, ...], reach: float) -> float | None:
    """M_c(δ) of a kernel of differences in all coordinates of `box`, or None where K was not shown analytic there.

    `ends` D_b and `reach` δ in units of the radii, D rounded up.
    """
    region = Region(kernel, box, tuple(range(box.d)), variable)
    others = tuple(end for c, end in enumerate(ends) if c != variable)
    return enclosed_maximum(region, HalfStrip(ends[variable] + reach, reach, others), SLACK, ROUNDS, PROBES)
