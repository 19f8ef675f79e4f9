"""sup |P| for P = Σ c_{αB} T_α(u) Σ_{arrangements of B} Π_j T_{B_j}(v_j), symmetric in m tokens, rounding included.

In angles, u = cos θ, P is a sum of waves of frequency α. Along a line θ* + s·e from a point where |P| is largest it is
of exponential type σ = max Σ α_j |e_j| and bounded by ‖P‖, hence |P| ≥ ‖P‖ cos(σ s) while σ s ≤ π (M. Riesz; Duffin and
Schaeffer). The grid of the zeros of T_{M_x} in every own and of T_{M_y} in every other coordinate has a point within
π/(2M) of each angle, so with |α|, |B| the total degrees
  ‖P‖ ≤ max over the grid |P| / cos τ,   τ = max over the terms of (π/2)(|α|/M_x + |B|/M_y) < π/2.
Terms that would make τ too large (few, high, small) are bounded by their mass Σ|c|.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial, reduce
from math import comb, cos, inf, pi

import numpy as np

from sumformer.algebra import chebyshev
from sumformer.algebra.interval import PI, Interval
from sumformer.algebra.interval_functions import cos as interval_cos
from sumformer.algebra.multisets import IntArray, Multisets
from sumformer.algebra.orbit_tensors import transform
from sumformer.algebra.rounding import BoolArray, FloatArray, gamma, sum_up, unit_roundoff

TAUS = (Fraction(1, 3), Fraction(1, 2), Fraction(2, 3), Fraction(4, 5))  # τ / (π/2) allowed to the terms on the grid
GRID_BUDGET = 64_000_000
SECONDS_BUDGET = 12.0  # for one evaluation, about
_ROWS = 2**23
_PRICE = 0.3  # a bound this much smaller is worth all of the work
_U = unit_roundoff("float64")


@dataclass(eq=False)
class OrbitBasis:
    """The types of the own token and of the others, ordered by total degree, and m."""

    own: IntArray
    """(own types, d)"""
    others: IntArray
    """(other types, d)"""
    m: int

    def __post_init__(self) -> None:
        for types in (self.own, self.others):
            assert bool((np.diff(types.sum(axis=1)) >= 0).all())

    @cached_property
    def own_degrees(self) -> IntArray:
        """|α| of every own type."""
        return np.asarray(self.own.sum(axis=1))

    @cached_property
    def other_degrees(self) -> IntArray:
        """|B| of every multiset."""
        members = Multisets(len(self.others), self.m).members[self.m]
        return np.asarray(self.others.sum(axis=1)[members].sum(axis=1))

    @cached_property
    def arrangements(self) -> FloatArray:
        return Multisets(len(self.others), self.m).arrangements(self.m)


@dataclass(frozen=True)
class Grid:
    """M_x, M_y, and the τ/(π/2) up to which terms are evaluated on the grid."""

    own: int
    others: int
    tau: Fraction

    def points(self, d: int, m: int) -> int:
        return int(self.own**d * comb(self.others**d + m - 1, m))

    @property
    def looseness(self) -> float:
        """What the bound is expected to be over the norm: between 1 and 1/cos τ."""
        return (1 + 1 / cos(float(self.tau) * pi / 2)) / 2

    def holds(self, own_degrees: IntArray, other_degrees: IntArray) -> BoolArray:
        """Which (|α|, |B|) have (|α|/M_x + |B|/M_y) ≤ τ/(π/2), exactly."""
        left = own_degrees[:, None] * self.others + other_degrees[None, :] * self.own
        return np.asarray(left * self.tau.denominator <= self.tau.numerator * self.own * self.others)


def grids(basis: OrbitBasis) -> list[Grid]:
    """Grids within the budgets: every M_y that could be of use for a τ, with some ten M_x."""
    d, m = basis.own.shape[1], basis.m
    top_own, top_other = int(basis.own_degrees.max()), int(basis.others.sum(axis=1).max()) * m
    found = []
    for tau in TAUS:
        for others in range(2, int(top_other / tau) + 3):
            sizes = [Grid(own, others, tau) for own in range(2, int(4 * top_own / tau) + 3)]
            sizes = [g for g in sizes if g.points(d, m) <= GRID_BUDGET and grid_seconds(g, basis) <= SECONDS_BUDGET]
            if not sizes:
                break
            found += sizes[:: max(1, len(sizes) // 10)]
    return found


def grid_seconds(grid: Grid, basis: OrbitBasis) -> float:
    """Seconds of the transform, about: multiplications, of which wide matrices do more in a second."""
    d, m, types = basis.own.shape[1], basis.m, len(basis.others)
    nodes = grid.others**d
    steps = sum(comb(nodes + k - 1, k) * comb(types + m - k - 2, m - k - 1) for k in range(m))
    return float(grid.own**d * steps * nodes * types) / (1e8 * min(types, 100))


def mass(coefficients: FloatArray, basis: OrbitBasis) -> FloatArray:
    """Σ|c| over each orbit, the largest component, rounded up: (own types, multisets)."""
    return np.asarray(np.abs(coefficients).max(axis=0) * (basis.arrangements * (1 + 2.0**-40)))


def best_grid(masses: FloatArray, basis: OrbitBasis, peak: float, choices: list[Grid]) -> tuple[float, Grid | None]:
    """The least expected bound of a polynomial of about this sup norm, and its grid; None where mass alone is best."""
    a, b = basis.own_degrees, basis.other_degrees
    table = np.zeros((int(a.max()) + 1, int(b.max()) + 1))
    for degree in np.unique(a):
        table[degree] += np.bincount(b, weights=masses[a == degree].sum(axis=0), minlength=table.shape[1])
    least = float(table.sum())
    best: tuple[float, Grid | None] = (least, None)
    degrees = np.arange(table.shape[0]), np.arange(table.shape[1])
    for grid in choices:
        expected = float(table[~grid.holds(*degrees)].sum()) + peak * grid.looseness
        priced = expected * (1 + _PRICE * grid_seconds(grid, basis) / SECONDS_BUDGET)
        if priced < 0.98 * least:
            best, least = (expected, grid), priced
    return best


def orbit_norm(coefficients: FloatArray, basis: OrbitBasis, grid: Grid | None) -> float:
    """A bound of sup |P| over [−1, 1]^{(m+1)d}, the largest over components; coefficients (width, own, multisets)."""
    masses = mass(coefficients, basis)
    if grid is None:
        return sum_up(masses)
    held = grid.holds(basis.own_degrees, basis.other_degrees)
    crumbs = sum_up(masses[~held]) if not held.all() else 0.0
    low = np.where(held & (masses > 0), coefficients, 0.0)
    peak = _peak(low, basis, _zeros(grid.own), _zeros(grid.others))
    if not np.isfinite(peak):
        return inf
    n, d = basis.m + 1, basis.own.shape[1]
    # T̃ within 2d·COSINE_ERROR of T, and a dot product for each token: every term by (1 + δ)(1 + γ) per token
    types = max(len(basis.own), len(basis.others))
    growth = n * (2 * d * chebyshev.COSINE_ERROR + gamma(types + 2, _U)) * 1.01
    error = sum_up(masses[held]) * growth + 1e-290
    shrink = interval_cos(PI * Interval.from_fraction(grid.tau / 2))
    return float(((Interval(0.0, peak) + Interval(0.0, error)) / shrink + Interval(0.0, crumbs)).hi)


def expected_norm(coefficients: FloatArray, basis: OrbitBasis) -> float:
    """max |P| on a coarse grid with the corners in it: a guess, from below."""
    d, m = basis.own.shape[1], basis.m
    sizes = [k for k in range(2, 9) if k**d * comb(k**d + m - 1, m) <= 100_000] or [2]
    angles = np.linspace(0.0, np.pi, max(sizes))
    nodes = partial(_products, lambda k: np.cos(angles[:, None] * k[None, :]))
    return _peak(coefficients, basis, nodes, nodes)


Nodes = Callable[[IntArray], FloatArray]  # types (…, d) → T at the nodes, (nodes, types)


def _peak(coefficients: FloatArray, basis: OrbitBasis, own_nodes: Nodes, other_nodes: Nodes) -> float:
    """max |P| over a grid; NaN, from an overflow, counts as ∞."""
    used = np.abs(coefficients).max(axis=0) > 0
    if not used.any():
        return 0.0
    rows = int(np.flatnonzero(used.any(axis=1))[-1]) + 1
    members = Multisets(len(basis.others), basis.m).members[basis.m][used.any(axis=0)]
    types = int(members.max()) + 1 if members.size else 1
    count = comb(types + basis.m - 1, basis.m)  # multisets of the first types stand first
    own, others = own_nodes(basis.own[:rows]), other_nodes(basis.others[:types])
    step = max(1, _ROWS // max(count, comb(len(others) + basis.m - 1, basis.m)))
    peak = 0.0
    with np.errstate(all="ignore"):
        for component in coefficients[:, :rows, :count]:
            for start in range(0, len(own), step):
                found = float(np.abs(transform(component, own[start : start + step], others, basis.m)).max())
                peak = max(peak, inf if np.isnan(found) else found)
    return peak


def _zeros(M: int) -> Nodes:
    """T_k at the zeros of T_M, within COSINE_ERROR for each coordinate."""
    cosines, odd = chebyshev.cosines(M), 2 * np.arange(M) + 1
    return partial(_products, lambda k: cosines[(k[None, :] * odd[:, None]) % (4 * M)])


def _products(at: Nodes, types: IntArray) -> FloatArray:
    """Π_c T_{k_c} on the tensor grid of the nodes, (nodes^d, types)."""
    d = types.shape[1]
    axes = [at(types[:, c]) for c in range(d)]
    shaped = [axis.reshape(*(len(axis) if i == c else 1 for i in range(d)), -1) for c, axis in enumerate(axes)]
    return np.asarray(reduce(np.multiply, shaped)).reshape(-1, len(types))
