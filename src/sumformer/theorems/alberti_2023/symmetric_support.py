"""S = the largest orbits of I_N g, as few as sup |I_N g − S| ≤ tolerance allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumformer.algebra.multisets import IntArray, Multisets
from sumformer.algebra.orbit_norm import Grid, best_grid, expected_norm, grid_seconds, grids, mass, orbit_norm
from sumformer.algebra.rounding import BoolArray, FloatArray, sum_up
from sumformer.theorems.alberti_2023.orbit_interpolant import OrbitInterpolant

TRIALS = 3  # bounds computed at most …
SECONDS = 30.0  # … and about so long
STEPS = 9  # of bisection
CLOSE = 0.7  # a bound this near to the tolerance is not improved further
HELD = 0.15  # what a term on the grid weighs against one that is bounded by its mass


@dataclass(frozen=True, eq=False)
class Support:
    """The kept orbits: own (K, d), others (K, m, d), coefficients (width, K); `dropped` ≥ sup |I_N g − S|."""

    own: IntArray
    others: IntArray
    coefficients: FloatArray
    dropped: float
    grid: Grid | None
    mass: float


class SupportStudy:
    """Orbits in an order, first those that are to be kept; a support is how many of them are."""

    def __init__(self, interpolant: OrbitInterpolant) -> None:
        self.basis, self.coefficients = interpolant.basis, interpolant.coefficients
        self.error = interpolant.error
        self.masses = mass(self.coefficients, self.basis)
        self.choices = grids(self.basis)

    def choose(self, tolerance: float) -> Support | None:
        """A support whose dropped part is proved ≤ tolerance; None where rounding alone is more."""
        room = tolerance - self.error
        if room <= 0:
            return None
        plain = np.argsort(-self.masses, axis=None, kind="stable")
        tails = np.append(np.cumsum(self.masses.ravel()[plain][::-1])[::-1], 0.0)
        safe = max(1, int(np.searchsorted(-tails, -room * (1 - 1e-9))))  # mass alone proves this one
        rest = self._rest(plain, max(1, safe // 2))
        peak = expected_norm(rest, self.basis)
        grid = best_grid(mass(rest, self.basis), self.basis, peak, self.choices)[1]
        found = None if grid is None else self._on_grid(room, grid, safe)
        return found or self._support(plain[:safe], orbit_norm(self._rest(plain, safe), self.basis, None), None)

    def _on_grid(self, room: float, grid: Grid, safe: int) -> Support | None:
        """The fewest orbits, at most `safe`, for which the bound on the grid was found to be within `room`."""
        most = safe
        held = grid.holds(self.basis.own_degrees, self.basis.other_degrees)
        order = np.argsort(-np.where(held, HELD * self.masses, self.masses), axis=None, kind="stable")
        best: Support | None = None
        scale = 1.0  # proved over expected
        trials = min(TRIALS, 1 + int(SECONDS / (1.0 + grid_seconds(grid, self.basis))))
        for _ in range(trials):
            size = self._guess(order, grid, held, room * 0.97 / scale, most)
            if size >= most:
                break
            found = orbit_norm(self._rest(order, size), self.basis, grid)
            if found <= room:
                best, most = self._support(order[:size], found, grid), size
                if found >= CLOSE * room:
                    break
            scale = found / self._expected(order, size, grid, held)
        if best is None:  # as many orbits as by mass, but a smaller bound
            found = orbit_norm(self._rest(order, safe), self.basis, grid)
            best = self._support(order[:safe], found, grid) if found <= room else None
        return best

    def _guess(self, order: IntArray, grid: Grid, held: BoolArray, room: float, most: int) -> int:
        """About the least size with an expected bound ≤ room."""
        low, high = 1, most
        for _ in range(STEPS):
            if high - low <= max(1, low // 20):
                break
            middle = min(max(round((low * high) ** 0.5), low + 1), high - 1)
            if self._expected(order, middle, grid, held) <= room:
                high = middle
            else:
                low = middle
        return high

    def _expected(self, order: IntArray, size: int, grid: Grid, held: BoolArray) -> float:
        """Mass of what is not held by the grid, and a guess for the rest; unproved."""
        rest = self._rest(order, size)
        crumbs = float(mass(rest, self.basis)[~held].sum())
        return crumbs + grid.looseness * expected_norm(np.where(held, rest, 0.0), self.basis)

    def _rest(self, order: IntArray, size: int) -> FloatArray:
        """The coefficients without the kept ones."""
        rest = self.coefficients.reshape(len(self.coefficients), -1).copy()
        rest[:, order[:size]] = 0.0
        return rest.reshape(self.coefficients.shape)

    def _support(self, kept: IntArray, bound: float, grid: Grid | None) -> Support:
        a, b = np.unravel_index(kept, self.masses.shape)
        members = Multisets(len(self.basis.others), self.basis.m).members[self.basis.m]
        coefficients = self.coefficients.reshape(len(self.coefficients), -1)[:, kept]
        total = sum_up(self.masses.ravel()[kept])
        return Support(self.basis.own[a], self.basis.others[members[b]], coefficients, bound + self.error, grid, total)
