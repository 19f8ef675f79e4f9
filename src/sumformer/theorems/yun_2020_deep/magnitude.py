"""How large the numbers get, in units of δ: an exact bound on every |entry| and |id|, out-of-range inputs included.

A token moves at most once in the selective shifts, and in them l̃ ≤ l + Q (max − min): n times for n tokens that are in
range (min ≥ 0), n − 1 times where one is out of range (min = −δ^{−nd}·Σu at least). The last shift adds Q^{n+1} max.
"""

from __future__ import annotations

from dataclasses import dataclass

from sumformer.theorems.yun_2020_deep.grid import Grid

EXACT = 2**53
"""Whole numbers up to here are float64s."""


@dataclass(frozen=True)
class Magnitude:
    """`inside`: for inputs in range; `overall`: for all inputs; `before`: ids that meet as query and key."""

    inside: int
    overall: int
    before: int


def magnitude(grid: Grid) -> Magnitude:
    """Of the dense contextual mapping."""
    top = grid.Q - 1 + (0 if grid.places is None else (grid.n - 1) * grid.stride)
    last = grid.Q ** (grid.n + 1) * (1 if grid.places is None else 2 * grid.n)
    inside = _chain(top, 0, grid.Q, grid.n)
    if grid.places is not None:
        return Magnitude((1 + last) * inside, (1 + last) * inside, inside)
    below = grid.outside * sum(grid.u)
    overall = max(_chain(top, below, grid.Q, grid.n - 1), inside, below)
    return Magnitude((1 + last) * inside, (1 + last) * overall, overall)


def _chain(top: int, below: int, factor: int, times: int) -> int:
    """The largest id after `times` shifts, each of a token ≤ top by factor·(max + below)."""
    largest = top
    for _ in range(times):
        largest = top + factor * (largest + below)
    return largest
