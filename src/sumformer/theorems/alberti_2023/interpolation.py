"""K̃ = Σ_{α,β} A_{αβ} T_α(u) T_β(v) with a proved sup |K − K̃|.

|K − K̃| ≤ R_N + ‖I_N K − K̃‖:
  R_N = Σ_v Λ^{v−1} min_ρ 4 M_v(ρ) ρ^{−N}/(ρ−1), the error of interpolation at a degree N high enough not to matter;
  ‖I_N K − K̃‖ the sup of a polynomial, known by its coefficients: bounded on a grid of Chebyshev points.
K̃ is I_N K cut to a lower degree (the dropped part is what is bounded), its coefficients rounded to the network's dtype.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from sumformer.algebra import chebyshev
from sumformer.algebra.interval import Interval, concatenate
from sumformer.algebra.interval_operations import IntervalOperations
from sumformer.algebra.rounding import FloatArray, sum_up
from sumformer.algebra.tracked import INFLATE
from sumformer.errors import DomainError, RefusedError
from sumformer.targets import Node, Slice, Token, substitute, to_source
from sumformer.targets.domain import Box
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.targets.tree import TokenName
from sumformer.theorems.alberti_2023.components import coordinates
from sumformer.theorems.alberti_2023.remainder import Ellipse, Maxima, interpolation_remainder

LADDER = {
    1: (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2047),
    2: (6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64),
    3: (4, 6, 8, 10, 12, 14),
}
CRUMBS = 6  # degrees above the cut whose dropped part is bounded on a grid when there are more than two variables
NEGLIGIBLE = 0.01  # of what is bounded: so much may be bounded by its mass in two variables
GRID_BUDGET = 20_000_000
CELLS = {1: 64, 2: 10, 3: 5}


class DegreeBudgetError(RefusedError):
    """No degree, or no mesh, in the budget is enough: it would be at `excess` times the tolerance.

    `dear`: whether to plan for that takes long.
    """

    def __init__(self, message: str, reasons: Sequence[str], excess: float, dear: bool = False) -> None:
        self.excess, self.dear = excess, dear
        super().__init__(message, reasons)


@dataclass(frozen=True)
class Truncation:
    """The kept coefficients (x-axes first), rounded to the network's dtype, and what was dropped or rounded away."""

    coefficients: FloatArray
    dropped: float

    def matrix(self) -> FloatArray:
        """A as (x-features, y-features)."""
        k = self.coefficients.ndim // 2
        rows = int(np.prod(self.coefficients.shape[:k]))
        return self.coefficients.reshape(rows, -1)


@dataclass
class Interpolant:
    """I_N K on [−1, 1]^{2k} with the remainder R_N; `truncate` cuts it down."""

    coefficients: FloatArray
    remainder: float
    coefficient_error: float
    ellipses: tuple[Ellipse, ...]
    _cache: dict[tuple[int, str], Truncation] = field(default_factory=dict)

    @property
    def degree(self) -> int:
        return int(self.coefficients.shape[0]) - 1

    def estimate(self, degree: int) -> float:
        """A quick, unproved guess of what cutting to `degree` drops; only to order trials."""
        if degree >= self.degree:
            return 0.0
        return _rough(self._rest(self._cut(degree)))

    def truncate(self, degree: int, dtype: str) -> Truncation:
        """Cut to `degree` in every coordinate and round to `dtype`."""
        key = (degree, dtype)
        if key not in self._cache:
            kept = self._cut(min(degree, self.degree)).astype(dtype).astype(np.float64)
            rest = self._rest(kept)
            # what the subtraction rounds, and what is not known of each coefficient
            unknown = sum_up(np.abs(self.coefficients)) * 2.0**-52 + self.coefficient_error * self.coefficients.size
            unknown += self.coefficients.size * float(
                np.finfo(dtype).smallest_normal
            )  # stored ones may be flushed to 0
            dropped = (self._sup_norm(rest, kept.shape[0] - 1) + unknown) * INFLATE
            self._cache[key] = Truncation(kept, dropped)
        return self._cache[key]

    def _sup_norm(self, rest: FloatArray, degree: int) -> float:
        """sup |rest|; the high degrees, which hardly matter, are bounded by their mass alone."""
        last = degree + CRUMBS if rest.ndim > 2 else self._last_that_matters(rest)
        if last >= self.degree:
            return chebyshev.sup_norm_bound(rest, budget=GRID_BUDGET)
        crumbs = rest.copy()
        low = tuple(slice(0, last + 1) for _ in rest.shape)
        crumbs[low] = 0.0
        return chebyshev.sup_norm_bound(rest[low], budget=GRID_BUDGET) + sum_up(np.abs(crumbs))

    def _last_that_matters(self, rest: FloatArray) -> int:
        """The degree in any variable beyond which the mass is NEGLIGIBLE beside what `rest` attains."""
        highest = np.maximum.outer(np.arange(rest.shape[0]), np.arange(rest.shape[1]))
        beyond = np.cumsum(np.bincount(highest.ravel(), weights=np.abs(rest).ravel())[::-1])[::-1]
        return int(np.searchsorted(-beyond, -NEGLIGIBLE * _rough(rest)))

    def _cut(self, degree: int) -> FloatArray:
        return self.coefficients[tuple(slice(0, degree + 1) for _ in self.coefficients.shape)]

    def _rest(self, kept: FloatArray) -> FloatArray:
        rest = self.coefficients.copy()
        rest[tuple(slice(0, n) for n in kept.shape)] -= kept
        return rest


def _rough(rest: FloatArray) -> float:
    """|rest| on a coarse grid."""
    count = 5 if rest.ndim > 2 else min(2 * rest.shape[0] + 1, 401)
    points = [np.cos(np.linspace(0, np.pi, count))] * rest.ndim
    return float(np.abs(chebyshev.evaluate(rest, points)).max())


class KernelStudy:
    """What is known of one kernel on its own coordinates' box; equal kernels in other coordinates share it."""

    def __init__(self, kernel: Node, box: Box) -> None:
        self.kernel, self.box = kernel, box
        self.coords = tuple(range(box.d))
        self.maxima = Maxima(kernel, box, self.coords)
        self.interpolants: dict[int, Interpolant] = {}

    @cached_property
    def range(self) -> tuple[float, float]:
        """An enclosure of {K(x, y)} over the box, on cells."""
        edges = np.linspace(-1.0, 1.0, CELLS[self.box.d] + 1)
        cell = Interval(edges[:-1], edges[1:])
        values = _on_grid(self.kernel, self.box, self.coords, [cell] * (2 * self.box.d))
        return float(values.lo.min()), float(values.hi.max())

    def interpolate(self, tolerance: float) -> Interpolant:
        """I_N K at the first degree N of the ladder whose remainder is ≤ tolerance."""
        ladder = LADDER[self.box.d]
        remainder = float("inf")
        for degree in ladder:
            remainder, ellipses = interpolation_remainder(self.maxima, degree)
            if remainder <= tolerance:
                if degree not in self.interpolants:
                    self.interpolants[degree] = self._interpolant(degree, remainder, ellipses)
                return self.interpolants[degree]
        excess = remainder / tolerance
        needed = ladder[-1] + math.ceil(math.log(excess) / math.log(ellipses[0].rho))
        raise DegreeBudgetError(
            "route sums: the interpolation degree this needs is beyond the budget",
            [f"{to_source(self.kernel)} would need degree about {needed}; the largest tried is {ladder[-1]}"],
            excess,
            dear=True,
        )

    def _interpolant(self, degree: int, remainder: float, ellipses: tuple[Ellipse, ...]) -> Interpolant:
        values = _at_nodes(self.kernel, self.box, self.coords, degree)
        middle = (values.lo + values.hi) / 2
        value_error = float(np.maximum(values.hi - middle, middle - values.lo).max()) * INFLATE
        tensor = chebyshev.coefficients(middle)
        error = chebyshev.coefficient_error(middle.shape, float(np.abs(middle).max()), value_error)
        return Interpolant(tensor, remainder, error, ellipses)


class Studies:
    """Studies of kernels, shared between kernels that differ only in the names of their coordinates."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.known: dict[tuple[Node, Box], KernelStudy] = {}

    def of(self, kernel: Node) -> KernelStudy:
        coords = tuple(sorted(coordinates(kernel)))
        if len(coords) not in LADDER:
            raise RefusedError(
                "route sums: a kernel mixes too many coordinates",
                [f"{to_source(kernel)} mixes {len(coords)} coordinates; at most {max(LADDER)} are interpolated"],
            )
        box = Box(tuple(self.box.lower[c] for c in coords), tuple(self.box.upper[c] for c in coords))
        mapping: dict[Node, Node] = {}
        for name in ("x", "y"):
            old, new = Token(name, self.box.d), Token(name, len(coords))
            mapping |= {Slice(old, c, c + 1): Slice(new, i, i + 1) for i, c in enumerate(coords)}
        key = (substitute(kernel, mapping), box)
        if key not in self.known:
            self.known[key] = KernelStudy(*key)
        return self.known[key]


def _at_nodes(kernel: Node, box: Box, coords: tuple[int, ...], degree: int) -> Interval:
    """K at the Chebyshev nodes, as intervals that hold the value at the exact nodes."""
    t = chebyshev.nodes(degree)
    near = Interval(t - chebyshev.COSINE_ERROR, t + chebyshev.COSINE_ERROR)
    axes = [near] * (2 * len(coords))
    return _on_grid(kernel, box, coords, axes)


def _on_grid(kernel: Node, box: Box, coords: tuple[int, ...], axes: list[Interval]) -> Interval:
    """K on the tensor grid of t-intervals `axes` (x-coordinates first), shape = the axes' lengths.

    A part of K that some axes do not matter to is evaluated once along them.
    """
    k = len(coords)
    shape = tuple(axis.shape[0] for axis in axes)
    known: dict[Node, Interval] = {}
    tokens = []
    sides: tuple[TokenName, TokenName] = ("x", "y")
    for side, name in enumerate(sides):
        columns = [
            Interval.from_fraction(centre) + Interval.point(np.zeros((1,) * (2 * k + 1))) for centre in box.centre
        ]
        for i, c in enumerate(coords):
            axis = side * k + i
            placed = (*(shape[axis] if a == axis else 1 for a in range(2 * k)), 1)
            t = Interval(axes[axis].lo.reshape(placed), axes[axis].hi.reshape(placed))
            columns[c] = Interval.from_fraction(box.centre[c]) + Interval.from_fraction(box.radius[c]) * t
        known |= {Slice(Token(name, box.d), c, c + 1): column for c, column in enumerate(columns)}
        tokens.append(concatenate(columns) if box.d == 1 else None)
    value = evaluate(kernel, IntervalOperations(), Environment(x=tokens[0], y=tokens[1]), known)
    if not bool(np.all(value.defined)):
        raise DomainError(f"{to_source(kernel)} is not defined on the whole box {box}", to_source(kernel))
    return value.broadcast_to((*shape, 1))[..., 0]
