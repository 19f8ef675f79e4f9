"""K̂ for a kernel of differences k(x − y), from its values at differences of mesh nodes, with a proved sup |K − K̂|:

  remainder    of interpolating exact values at exact places (`mesh_choice.py`)
  samples      Λ^{2k} · the largest error of a value
  places       Σ_c 2 η_c s_c, s_c = M_c/δ_c or L_c: a token's place t̂ is rounded, so that it is another's, at most η_c
               away

(1 − I_v) K is taken where the variables before v are nodes, some outside of the box, hence the ends D_c of `strip.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import expm1, inf, prod
from typing import NoReturn

import numpy as np

from sumformer.algebra.equidistant import lebesgue
from sumformer.algebra.interval import Interval, concatenate
from sumformer.algebra.interval_operations import IntervalOperations
from sumformer.algebra.rounding import FloatArray
from sumformer.algebra.tracked import INFLATE
from sumformer.errors import DomainError, RefusedError
from sumformer.targets import Node, Slice, Token, to_source
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.differences import as_difference
from sumformer.theorems.alberti_2023.frequency_roundings import frequency_error, norm, spectrum_size
from sumformer.theorems.alberti_2023.interpolation import DegreeBudgetError, KernelStudy
from sumformer.theorems.alberti_2023.mesh_choice import Choice, by_frequencies, by_pairs, cost
from sumformer.theorems.alberti_2023.mesh_slants import Slants
from sumformer.theorems.alberti_2023.mesh_strips import Strips
from sumformer.theorems.alberti_2023.roundings import argument_errors

MAX_NODES = 2**21  # of one kernel, and of a product
MAX_PAIRED = 131_072  # that all meet each other
KEPT = 2  # samples, of the meshes tried last
AT_A_TIME = 2**20  # samples that are enclosed
LOST = 0.1  # of the tolerance, that a sum by frequencies may lose by rounding
BEYOND = "route mesh: the mesh this needs is beyond the budget"
SMALLEST = float(np.finfo(np.float64).smallest_normal)


@dataclass(frozen=True)
class Samples:
    """k at all differences of nodes, (2G_1 − 1, …), and how far from it they are: absolutely, and as a share of it."""

    values: FloatArray
    error: float
    relative: float

    @cached_property
    def largest(self) -> float:
        """max |K|."""
        return float(np.abs(self.values).max())

    @cached_property
    def norm(self) -> float:
        """‖K‖₂."""
        return norm(self.values)


@dataclass(frozen=True)
class MeshKernelPlan:
    """K̂_g: its mesh, its samples, the errors η_c of places in units of the radii, how nodes are summed over."""

    study: KernelStudy
    coordinates: tuple[int, ...]
    choice: Choice
    samples: Samples
    places: tuple[float, ...]
    by_frequencies: bool

    @property
    def range(self) -> tuple[float, float]:
        """Of K_g."""
        return self.study.range

    @property
    def shape(self) -> tuple[int, ...]:
        """Nodes along each coordinate."""
        return self.choice.shape

    @property
    def nodes(self) -> int:
        return prod(self.shape)

    @property
    def remainder(self) -> float:
        return self.choice.remainder

    @property
    def dropped(self) -> float:
        """Samples and places."""
        moved = [2 * e * s for e, s in zip(self.places, self.choice.slopes, strict=True)]
        return (self.spread * self.samples.error + sum(moved)) * INFLATE

    @property
    def relative_remainder(self) -> float:
        """Of K, ∞ where it is not known."""
        return self.choice.relative

    @property
    def relative_dropped(self) -> float:
        """Of K̂ with exact samples and places, ∞ where it is not known: its weights are none below 0."""
        if self.choice.relative == inf:
            return inf
        moved = [2 * e * s.log_slope for e, s in zip(self.places, self.choice.slants, strict=True)]
        return expm1(sum(moved) * INFLATE) + 2 * self.samples.relative if sum(moved) < 0.69 else inf

    @property
    def spread(self) -> float:
        """Λ^{2k}: of the weights at x and at y."""
        return float(lebesgue(self.choice.width) ** (2 * len(self.coordinates))) * INFLATE

    @property
    def mass(self) -> float:
        """Bounds |K̂| and carries every rounding."""
        return self.spread * self.samples.largest * INFLATE

    def sum_error(self, u: float) -> float:
        """Of a sum over nodes, in units of max |K| ‖m‖₁."""
        if not self.by_frequencies:
            return 1.01 * self.nodes * u
        largest = self.samples.largest
        return frequency_error(self.shape, u) * self.samples.norm / largest if largest else 0.0

    @property
    def growth(self) -> float:
        """By how much numbers on the way may exceed or fall below those that a sum over nodes begins and ends with."""
        return float(spectrum_size(self.shape)) ** 2 if self.by_frequencies else 1.0


class MeshStudy:
    """What is known of one kernel of differences on a mesh."""

    def __init__(self, study: KernelStudy) -> None:
        self.study, self.strips, self.slants = study, Strips(study), Slants(study)
        self.last: dict[tuple[int, tuple[int, ...]], Samples] = {}

    def choice(self, axes: int, tolerance: float, relative: float) -> Choice:
        """The cheapest mesh whose remainder is ≤ tolerance, or ≤ `relative` of K; `axes`: of the largest product.

        Where all are beyond the budget, the smallest.
        """
        choices = [*self.strips.choices(tolerance), *self.slants.choices(tolerance, relative)]
        if not choices:
            self._refuse_rough()
        within = [c for c in choices if nodes_alike(c, axes) <= MAX_NODES]
        return min(within, key=lambda c: cost(c, axes)) if within else min(choices, key=lambda c: prod(c.shape))

    def plan(
        self, coordinates: tuple[int, ...], chosen: Choice, tolerance: float, arithmetic: Arithmetic
    ) -> MeshKernelPlan:
        """The samples on the chosen mesh, and how its nodes are summed over."""
        chosen = self.strips.narrowed(chosen) if chosen.strips else chosen
        u, box = arithmetic.u, self.study.box
        places = tuple(
            e + 4.1 * u for e in argument_errors(box, arithmetic, u)
        )  # t̂, t̂ + 1 ≤ 2 and its product with m/2
        fewer = by_frequencies(chosen.shape) < by_pairs(chosen.shape)
        plan = MeshKernelPlan(self.study, coordinates, chosen, self._samples(chosen), places, fewer)
        lost = plan.sum_error(u) * plan.mass
        if fewer and not lost <= LOST * tolerance:
            if plan.nodes > MAX_PAIRED:
                needs = f"{to_source(self.study.kernel)} would need {plan.nodes:,} nodes"
                why = f"at most {MAX_PAIRED:,} are taken, as a sum over nodes by frequencies would round too much"
                raise DegreeBudgetError(BEYOND, [f"{needs}; {why}"], lost / (LOST * tolerance))
            return replace(plan, by_frequencies=False)
        return plan

    def _samples(self, chosen: Choice) -> Samples:
        """Kept for a while: refused with any tokens, the same meshes are tried with the own one among them."""
        mesh = (chosen.width, chosen.intervals)
        if mesh not in self.last:
            self.last = {**dict(list(self.last.items())[1 - KEPT :]), mesh: self._sampled(chosen)}
        return self.last[mesh]

    def _sampled(self, chosen: Choice) -> Samples:
        sizes = [2 * nodes - 1 for nodes in chosen.shape]
        values, error, relative = np.empty(sizes), 0.0, 0.0
        rows = max(1, AT_A_TIME // prod(sizes[1:]))
        for first in range(0, sizes[0], rows):
            piece = slice(first, min(first + rows, sizes[0]))
            exact = self._enclosed(chosen, sizes, piece)
            values[piece] = (exact.lo + exact.hi) / 2
            off = np.maximum(exact.hi - values[piece], values[piece] - exact.lo)
            error = max(error, float(off.max()))
            least = exact.lo > 4 * SMALLEST
            relative = max(relative, float((off / exact.lo).max(where=least, initial=0.0)) if least.all() else inf)
        return Samples(values, error * INFLATE + SMALLEST, relative * INFLATE)  # stored ones may be flushed to 0

    def _enclosed(self, chosen: Choice, sizes: Sequence[int], piece: slice) -> Interval:
        """Those with these places on the first axis."""
        box, kernel = self.study.box, as_difference(self.study.kernel)
        if kernel is None:
            raise AssertionError("only kernels of differences are studied")
        columns = []
        for c, (m, size) in enumerate(zip(chosen.intervals, sizes, strict=True)):
            e = np.arange(float(size)) - (size - 1) // 2
            e = e[piece] if c == 0 else e
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
        return value.broadcast_to((piece.stop - piece.start, *sizes[1:], 1))[..., 0]

    def _refuse_rough(self) -> NoReturn:
        source = to_source(self.study.kernel)
        raise RefusedError(
            "route mesh: a kernel was not shown to be smooth enough",
            [f"{source} is neither known to be analytic near all differences of a mesh around the box, nor of a slope"],
        )


def nodes_alike(chosen: Choice, axes: int) -> float:
    """Of a product of kernels with as many axes, if all are like this one."""
    return float(prod(chosen.shape) ** (axes / len(chosen.shape)))


def of_differences(studies: Mapping[Node, KernelStudy]) -> None:
    """Refuse kernels that are no functions of x − y."""
    others = [to_source(s.kernel) for s in studies.values() if as_difference(s.kernel) is None]
    if others:
        reasons = [
            f"{', '.join(dict.fromkeys(others))} is another one",
            "route sums takes analytic ones of any form",
        ]
        raise RefusedError("route mesh: a kernel is not a function of x − y", reasons)
