"""δ from ε: the least q = 1/δ with  cells + equal cells + ramps ≤ ε,  the first from the certified modulus of f.

d_p(f, g) ≤ (V ∫_{apart} ‖f − f̄‖^p)^{1/p} + (V ∫_{equal cells} ‖f‖^p)^{1/p} + (V · n d e Σ range^p)^{1/p} + rounding
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite

import numpy as np

from sumformer.algebra.rounding import shown_up
from sumformer.errors import RefusedError
from sumformer.targets.target import Target
from sumformer.theorems.integral_norm import powers, root
from sumformer.theorems.yun_2020_deep.grid import Grid
from sumformer.theorems.yun_2020_deep.piecewise_constant import (
    Floats,
    Integrals,
    PiecewiseConstant,
    integrals,
    parts_per_cell,
    piecewise_constant,
    volume,
)

SLACK = 1.02  # claimed over computed, so that a checker with slightly wider enclosures agrees
SHARE = 0.03  # of ε for ramps and the rounding of values
BUDGET = 60_000
LEAST_RAMP = Fraction(1, 2**30)


@dataclass(frozen=True)
class Choice:
    """A grid that meets ε, f̄ on it, its integrals, and the sum of the terms that depend on δ alone."""

    grid: Grid
    bar: PiecewiseConstant
    parts: int
    found: Integrals
    bound: float


def search(
    f: Target,
    n: int,
    epsilon: float,
    p: float,
    grid_of: Callable[[int], Grid],
    obstacles: Callable[[Grid], list[str]],
    zero: float = inf,
    progress: Callable[[str], None] | None = None,
) -> Choice:
    """The least 1/δ (between tries) that meets ε; a refusal says what stands in the way, and which ε is reachable.

    `zero` ≥ d_p(f, 0), which the zero network reaches.
    """
    goal = epsilon * (1 - SHARE) / SLACK
    failed: Choice | None = None
    q = 2
    while not grid_of(q).inputs:
        q += 1
    while True:
        grid = grid_of(q)
        if reasons := obstacles(grid):
            q = _largest(grid_of, obstacles, 1 if failed is None else failed.grid.q, q)
            if failed is None or q <= failed.grid.q:
                raise _refusal(epsilon, failed, reasons, grid, zero)
            grid = grid_of(q)
        choice = _try(f, n, p, grid)
        if progress is not None:
            progress(f"1/δ = {q}: {choice.bound:.3g}")
        if choice.bound <= goal:
            break
        if not isfinite(choice.bound):
            raise RefusedError(
                f"|f − N|^p leaves float64 for p = {p:g}", ["a smaller p, or a target of a smaller size"]
            )
        failed = choice
        q = max(q + 1, int(0.9 * q * choice.bound / goal))
    low = 1 if failed is None else failed.grid.q
    while choice.grid.q - low > 1:
        middle = _try(f, n, p, grid_of((low + choice.grid.q) // 2))
        low, choice = (low, middle) if middle.bound <= goal else (middle.grid.q, choice)
    return choice


def ramp(f: Target, choice: Choice, p: float, epsilon: float) -> Fraction:
    """The largest e = 2^−k for which the ramps take no more than their share of ε."""
    e = Fraction(1, 4)
    while e > LEAST_RAMP and ramps_term(f, choice, p, float(e)) > epsilon * SHARE / 2:
        e /= 2
    return e


def ramps_term(f: Target, choice: Choice, p: float, share: float, reach: Floats | None = None) -> float:
    """(V · min(1, n d share) · n Σ_c R_c^p)^{1/p}: on the ramps f and g differ by R_c, the range of both, at most."""
    n, d = choice.grid.n, choice.grid.d
    reach = ranges(choice) if reach is None else reach
    measure = min(1.0, n * d * share) * (1 + 1e-9)
    return root(volume(f, n), measure * n * float(powers(reach, p).sum()), p)


def ranges(choice: Choice) -> Floats:
    """R_c ≥ |f − g| in coordinate c, where g lies between the least and greatest value of f̄, and 0."""
    low, high = np.minimum(choice.found.low, 0.0), np.maximum(choice.found.high, 0.0)
    return np.asarray((high - low) * (1 + 1e-6))


def terms(f: Target, choice: Choice, p: float, reach: Floats | None = None) -> tuple[float, float]:
    """Cells, and tokens in equal cells (two in one cell: f itself; three or more: the range)."""
    size, n = volume(f, choice.grid.n), choice.grid.n
    together = choice.found.together * n * float(powers(ranges(choice) if reach is None else reach, p).sum())
    roots = [root(size, part, p) for part in (choice.found.apart, choice.found.pairs + together)]
    return roots[0], roots[1]


def _try(f: Target, n: int, p: float, grid: Grid) -> Choice:
    bar = piecewise_constant(f, n, grid.q)
    s = parts_per_cell(f, n, grid.q, BUDGET)
    choice = Choice(grid, bar, s, integrals(bar, p, s, equal_cells=grid.places is not None), 0.0)
    return Choice(grid, bar, s, choice.found, sum(terms(f, choice, p)))


def _largest(grid_of: Callable[[int], Grid], obstacles: Callable[[Grid], list[str]], low: int, high: int) -> int:
    """The largest q in [low, high) without obstacles; they only grow."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if obstacles(grid_of(middle)) else (middle, high)
    return low


def _refusal(epsilon: float, failed: Choice | None, reasons: list[str], grid: Grid, zero: float) -> RefusedError:
    if failed is None:
        nearest = f"the zero network reaches ε = {shown_up(zero)}"
        message = f"already 1/δ = {grid.q} is too much for n = {grid.n}, d = {grid.d}"
        return RefusedError(message, [*reasons, nearest], zero)
    reachable = failed.bound * SLACK / (1 - SHARE) * (1 + 1e-9)
    largest = f"the largest that fits is 1/δ = {failed.grid.q}, which reaches ε = {shown_up(reachable)}"
    if zero < reachable:
        largest += f"; the zero network reaches {shown_up(zero)}"
    message = f"ε = {epsilon:g} needs more cells than 1/δ = {failed.grid.q}"
    return RefusedError(message, [*reasons, largest], min(reachable, zero))
