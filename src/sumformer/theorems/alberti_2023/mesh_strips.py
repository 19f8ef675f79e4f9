"""Which strips show that a kernel is smooth, and how fine a mesh they ask for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from sumformer.algebra.equidistant import lebesgue
from sumformer.algebra.tracked import INFLATE
from sumformer.targets import Extremum, Norm, Unary, postorder
from sumformer.theorems.alberti_2023.interpolation import KernelStudy
from sumformer.theorems.alberti_2023.mesh_choice import Choice, Strip
from sumformer.theorems.alberti_2023.strip import strip_maximum

WIDTHS = (4, 6, 8, 10, 12)
LEAST_INTERVALS = (8, 64)  # a mesh reaches (w − 2)/2 intervals beyond the box at either end: fewer where there are many
NARROWEST, WIDEST = 2.0**-14, 4.0  # δ in units of the radius
FIRST = tuple(4.0**-k for k in range(1, 8))  # which is tried first
STEPS = (4.0, 2.0, 2.0**0.5)


@dataclass
class Strips:
    """What is known of one kernel of differences in strips around the real differences."""

    study: KernelStudy
    _maxima: dict[tuple[int, int, float], float | None] = field(default_factory=dict)

    def choices(self, tolerance: float) -> list[Choice]:
        """A mesh of each width whose remainder is ≤ tolerance."""
        if self._has_corners:
            return []
        return [c for width in WIDTHS if (c := self._choice(width, tolerance)) is not None]

    @cached_property
    def _has_corners(self) -> bool:
        """What may have some is looked at in the narrowest strip first: where that is too wide, all are."""
        parts = postorder(self.study.kernel)
        may = any(isinstance(p, Extremum | Norm) or (isinstance(p, Unary) and p.fn == "abs") for p in parts)
        return may and self._maximum(0, max(LEAST_INTERVALS), NARROWEST) is None

    def narrowed(self, chosen: Choice) -> Choice:
        """The same strips for the chosen mesh, which reaches less far beyond the box than was reckoned with."""
        out = []
        for c, strip in enumerate(chosen.strips):
            found = self._maximum_of(c, chosen.width, chosen.intervals, strip.reach)
            out.append(strip if found is None or found > strip.maximum else Strip(strip.reach, found))
        return replace(chosen, strips=tuple(out))

    def _choice(self, width: int, tolerance: float) -> Choice | None:
        """Intervals and strips for this width, every coordinate allowed the same E."""
        d, best = self.study.box.d, None
        allowed = tolerance / sum(lebesgue(width) ** v for v in range(2 * d)) / INFLATE
        for least in LEAST_INTERVALS:
            if best is not None and min(best.intervals) < least:
                break  # a mesh as coarse as this reaches as far beyond the box as was reckoned with
            first = self._best(width, 0, least)
            strips = [first, *(first and self._like(first, width, c, least) for c in range(1, d))]
            found = [s for s in strips if s is not None]
            if len(found) == d:
                intervals = tuple(max(least, s.intervals(width, allowed)) for s in found)
                if best is None or prod(intervals) < prod(best.intervals):
                    best = Choice(width, intervals, strips=tuple(found))
        return best

    def _like(self, first: Strip, width: int, c: int, least: int) -> Strip | None:
        """The reach that served another coordinate, if it serves this one too."""
        same = self._maximum(c, least, first.reach)
        alike = same is not None and same <= 100 * first.maximum
        return Strip(first.reach, same) if alike and same is not None else self._best(width, c, least)

    def _best(self, width: int, c: int, least: int) -> Strip | None:
        """The strip that needs the fewest intervals. log M − w log δ is convex: uphill and downhill in finer steps."""
        best = next((s for reach in FIRST if (s := self._strip(c, least, reach)) is not None), None)
        for step in STEPS if best is not None else ():
            for factor in (step, 1 / step):
                while best is not None and (s := self._strip(c, least, best.reach * factor)) is not None:
                    if s.needs(width) >= best.needs(width):
                        break
                    best = s
        return best

    def _strip(self, c: int, least: int, reach: float) -> Strip | None:
        maximum = self._maximum(c, least, reach) if NARROWEST <= reach <= WIDEST else None
        return None if maximum is None else Strip(reach, maximum)

    def _maximum(self, c: int, least: int, reach: float) -> float | None:
        """M_c for meshes of all widths and of `least` intervals or more."""
        if (c, least, reach) not in self._maxima:
            found = self._maximum_of(c, max(WIDTHS), (least,) * self.study.box.d, reach)
            self._maxima[c, least, reach] = found if found is not None and found < 1e250 else None
        return self._maxima[c, least, reach]

    def _maximum_of(self, c: int, width: int, intervals: tuple[int, ...], reach: float) -> float | None:
        ends = tuple(2 * (1 + (width - 2) / m) * INFLATE for m in intervals)  # D/radius
        return strip_maximum(self.study.kernel, self.study.box, c, ends, reach)
