"""How steep a kernel with corners is, and how fine a mesh that asks for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf

from sumformer.algebra.rounding import fraction_bounds
from sumformer.algebra.tracked import INFLATE
from sumformer.targets import Node
from sumformer.targets.normalised_slopes import log_of
from sumformer.theorems.alberti_2023.differences import as_difference
from sumformer.theorems.alberti_2023.interpolation import KernelStudy
from sumformer.theorems.alberti_2023.mesh_choice import MOST_INTERVALS, Choice, Slant
from sumformer.theorems.alberti_2023.steepness import steepness


@dataclass
class Slants:
    """What is known of one kernel's slopes."""

    study: KernelStudy

    def choices(self, tolerance: float, relative: float) -> list[Choice]:
        """A mesh on which K errs by ≤ tolerance, and one on which it errs by ≤ `relative` of itself."""
        known = self._slants
        by_slope = [32 / 27 * len(known) * s.slope / tolerance for s in known]
        by_log_slope = [32 / 27 * len(known) * s.log_slope * (1 / relative + 2 * len(known)) for s in known]
        wanted = [w for w in (by_slope, by_log_slope) if w and max(w) < inf]
        most = float(MOST_INTERVALS)
        return [Choice(2, tuple(max(1, ceil(min(m * INFLATE, most))) for m in w), slants=known) for w in wanted]

    @cached_property
    def _slants(self) -> tuple[Slant, ...]:
        """Of every coordinate; none at all where K has no slope."""
        box, k = self.study.box, as_difference(self.study.kernel)
        if k is None:
            raise AssertionError("only kernels of differences are studied")
        slopes = self._steep(k)
        logs = self._steep(log_of(k)) if self.study.range[0] > 0 else [inf] * box.d
        return () if max(slopes) == inf else tuple(Slant(s, t) for s, t in zip(slopes, logs, strict=True))

    def _steep(self, k: Node) -> list[float]:
        """Per radius; ∞ where no bound was found."""
        box = self.study.box
        found = [steepness(k, box, c) for c in range(box.d)]
        radii = [fraction_bounds(r)[1] for r in box.radius]
        return [inf if s is None else s * r * INFLATE for s, r in zip(found, radii, strict=True)]
