"""K̂ for a kernel of differences k(x − y), from its values at differences of mesh nodes, with a proved sup |K − K̂|:

  remainder    Σ_v Λ^v E_{c(v)}, v = 0 … 2k − 1 over the coordinates of x, then of y;  E_c = M_c(δ_c) P_w (h_c/δ_c)^w
  samples      Λ^{2k} · the largest error of a value
  places       Σ_c 2 η_c M_c/δ_c: a token's place t̂ is rounded, so that it is another's, at most η_c away

(1 − I_v) K is taken where the variables before v are nodes, some outside of the box, hence the ends D_c of `strip.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, prod

import numpy as np

from sumformer.algebra.equidistant import lebesgue, node_polynomial
from sumformer.algebra.interval import Interval, concatenate
from sumformer.algebra.interval_operations import IntervalOperations
from sumformer.algebra.rounding import FloatArray
from sumformer.algebra.tracked import INFLATE
from sumformer.errors import DomainError, RefusedError
from sumformer.targets import Node, Slice, Token, to_source
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.ellipse import as_difference
from sumformer.theorems.alberti_2023.interpolation import DegreeBudgetError, KernelStudy
from sumformer.theorems.alberti_2023.roundings import argument_errors
from sumformer.theorems.alberti_2023.strip import strip_maximum

WIDTHS = (4, 6, 8, 10, 12)
MAX_NODES = 131_072  # of one kernel, all of which meet each other
LEAST_INTERVALS = (8, 64)  # a mesh reaches (w − 2)/2 intervals beyond the box at either end: fewer where there are many
NARROWEST, WIDEST = 2.0**-14, 4.0  # δ in units of the radius
FIRST = tuple(4.0**-k for k in range(1, 8))  # which is tried first
STEPS = (4.0, 2.0, 2.0**0.5)
TOKENS = 100_000  # that a width is chosen for


@dataclass(frozen=True)
class Strip:
    """δ and M_c(δ) of one coordinate; δ in units of its radius."""

    reach: float
    maximum: float

    def remainder(self, width: int, intervals: int) -> float:
        """E_c, h/δ = 2/(m·reach)."""
        return self.maximum * float(node_polynomial(width)) * (2 / (intervals * self.reach)) ** width * INFLATE

    def needs(self, width: int) -> float:
        """What the number of intervals grows with."""
        return float(self.maximum ** (1 / width)) / self.reach

    def intervals(self, width: int, allowed: float) -> int:
        """The fewest for which E_c ≤ allowed."""
        ratio = self.maximum * float(node_polynomial(width)) / allowed
        return ceil(2 / self.reach * float(ratio ** (1 / width)) * INFLATE)


@dataclass(frozen=True)
class Choice:
    """A mesh that is fine enough, and why."""

    width: int
    intervals: tuple[int, ...]
    strips: tuple[Strip, ...]


@dataclass(frozen=True)
class MeshKernelPlan:
    """K̂_g: its mesh, its samples, its proved error (remainder + dropped: samples and places), the range of K_g."""

    study: KernelStudy
    coordinates: tuple[int, ...]
    width: int
    intervals: tuple[int, ...]
    strips: tuple[Strip, ...]
    samples: FloatArray
    remainder: float
    dropped: float

    @property
    def range(self) -> tuple[float, float]:
        return self.study.range

    @property
    def spread(self) -> float:
        """Λ^{2k}: of the weights at x and at y."""
        return float(lebesgue(self.width) ** (2 * len(self.coordinates))) * INFLATE

    @property
    def mass(self) -> float:
        """Bounds |K̂| and carries every rounding."""
        return self.spread * float(np.abs(self.samples).max()) * INFLATE

    @property
    def nodes(self) -> int:
        return prod(m + self.width - 1 for m in self.intervals)


@dataclass
class MeshStudy:
    """What is known of one kernel of differences on a mesh."""

    study: KernelStudy
    _maxima: dict[tuple[int, int, float], float | None] = field(default_factory=dict)

    def plan(self, coordinates: tuple[int, ...], axes: int, tolerance: float, arithmetic: Arithmetic) -> MeshKernelPlan:
        """The cheapest mesh whose remainder is ≤ tolerance; `axes`: of the largest product that K is in."""
        choices = [c for width in WIDTHS if (c := self._choice(width, tolerance)) is not None]
        if not choices:
            self._refuse_analytic()
        chosen = min(choices, key=lambda c: _cost(c.width, c.intervals, axes))
        width, intervals = chosen.width, chosen.intervals
        nodes = prod(m + width - 1 for m in intervals)
        if nodes > MAX_NODES:
            excess = (nodes / MAX_NODES) ** (width / len(intervals))
            raise DegreeBudgetError(
                "route mesh: the mesh this needs is beyond the budget",
                [f"{to_source(self.study.kernel)} would need {nodes:,} nodes; at most {MAX_NODES:,} are taken"],
                excess,
            )
        return self._sampled(coordinates, width, intervals, self._narrowed(chosen), arithmetic)

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
                    best = Choice(width, intervals, tuple(found))
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

    def _narrowed(self, chosen: Choice) -> tuple[Strip, ...]:
        """The same strips for the chosen mesh, which reaches less far beyond the box than was reckoned with."""
        out = []
        for c, strip in enumerate(chosen.strips):
            found = self._maximum_of(c, chosen.width, chosen.intervals, strip.reach)
            out.append(strip if found is None or found > strip.maximum else Strip(strip.reach, found))
        return tuple(out)

    def _sampled(
        self,
        coordinates: tuple[int, ...],
        width: int,
        intervals: tuple[int, ...],
        strips: tuple[Strip, ...],
        arithmetic: Arithmetic,
    ) -> MeshKernelPlan:
        d, factor = self.study.box.d, lebesgue(width)
        remainder = sum(factor**v * strips[v % d].remainder(width, intervals[v % d]) for v in range(2 * d)) * INFLATE
        values = self._values(width, intervals)
        samples = (values.lo + values.hi) / 2
        error = float(np.maximum(values.hi - samples, samples - values.lo).max()) * INFLATE
        error += float(np.finfo(np.float64).smallest_normal)  # stored ones may be flushed to 0
        places = [2 * e * s.maximum / s.reach for e, s in zip(self._place_errors(arithmetic), strips, strict=True)]
        dropped = (factor ** (2 * d) * error + sum(places)) * INFLATE
        return MeshKernelPlan(self.study, coordinates, width, intervals, strips, samples, remainder, dropped)

    def _place_errors(self, arithmetic: Arithmetic) -> list[float]:
        """η_c in units of the radius: t̂, then t̂ + 1 ≤ 2 and its product with m/2, each rounded once."""
        return [e + 4.1 * arithmetic.u for e in argument_errors(self.study.box, arithmetic, arithmetic.u)]

    def _values(self, width: int, intervals: tuple[int, ...]) -> Interval:
        """k at all differences of nodes, (2G_1 − 1, …)."""
        box, kernel = self.study.box, as_difference(self.study.kernel)
        if kernel is None:
            raise AssertionError("only kernels of differences are studied")
        columns = []
        for c, m in enumerate(intervals):
            e = np.arange(2.0 * (m + width - 1) - 1) - (m + width - 2)
            shape = tuple(e.size if a == c else 1 for a in range(box.d))
            step = Interval.from_fraction(2 * box.radius[c] / Fraction(m))
            columns.append(step * Interval.point(e.reshape((*shape, 1))))
        known: dict[Node, Interval] = {Slice(Token("x", box.d), c, c + 1): column for c, column in enumerate(columns)}
        x = concatenate(columns) if box.d == 1 else None
        value = evaluate(kernel, IntervalOperations(), Environment(x=x), known)
        if not bool(np.all(value.defined)):
            source = to_source(self.study.kernel)
            raise DomainError(
                f"{source} is not defined at all differences of a mesh a little larger than the box", source
            )
        sizes = tuple(2 * (m + width - 1) - 1 for m in intervals)
        return value.broadcast_to((*sizes, 1))[..., 0]

    def _refuse_analytic(self) -> None:
        source = to_source(self.study.kernel)
        raise RefusedError(
            "route mesh: a kernel was not shown to be smooth enough",
            [f"{source} is not known to be analytic and bounded near all differences of a mesh around the box"],
        )


def _cost(width: int, intervals: tuple[int, ...], axes: int) -> float:
    """Of masses and values of TOKENS tokens, of the sums over nodes, which are matrix products, and of the nodes."""
    nodes, kernels = prod(m + width - 1 for m in intervals), axes / len(intervals)
    masses = float(nodes**kernels)
    return 2.0 * TOKENS * float(width**axes) + kernels * masses * nodes / 64 + 64 * masses


def of_differences(studies: Mapping[Node, KernelStudy]) -> None:
    """Refuse kernels that are no functions of x − y."""
    others = [to_source(s.kernel) for s in studies.values() if as_difference(s.kernel) is None]
    if others:
        raise RefusedError(
            "route mesh: a kernel is not a function of x − y", [f"{', '.join(dict.fromkeys(others))} is another one"]
        )
