"""sup of a function over a box, from bounds on cells that are halved where a bound is above a goal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.checker.interval import Floats

BUDGET = 400_000  # cells
Cells = tuple[Floats, Floats]
"""Low and high ends, (cells, sides)."""


def largest(
    cells: Cells,
    bounds: Callable[[Floats, Floats], Floats],
    goal: float,
    budget: int,
    met: Callable[[Floats, Floats], NDArray[np.bool_]] | None = None,
) -> float:
    """≥ the sup over all cells: halved until no bound is above `goal` or `budget` cells have been bounded.

    `met`: which cells count at all.
    """
    low, high = cells
    settled, spent = 0.0, 0
    while len(low):
        found = bounds(low, high)
        found = np.where(np.isnan(found), np.inf, found)  # what is unknown has no bound
        spent += len(low)
        over = ~(found <= goal)
        settled = max(settled, float(found[~over].max(initial=0.0)))
        if spent + 2 * int(over.sum()) > budget:
            return max(settled, float(found.max()))
        low, high = _halves(low[over], high[over])
        if met is not None:
            near = met(low, high)
            low, high = low[near], high[near]
    return settled


def _halves(low: Floats, high: Floats) -> Cells:
    """Both halves of every cell along its widest side."""
    rows, widest = np.arange(len(low)), np.argmax(high - low, axis=1)
    middle = (low[rows, widest] + high[rows, widest]) / 2
    first_high, second_low = high.copy(), low.copy()
    first_high[rows, widest], second_low[rows, widest] = middle, middle
    return np.concatenate([low, second_low]), np.concatenate([first_high, high])
