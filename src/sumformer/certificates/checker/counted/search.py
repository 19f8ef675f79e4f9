"""sup of a modulus over all cells: cells of x (and n) are halved, y's grid made finer, whichever lowers the bound more.

Cells below the goal are settled. The search ends when none is above it, when the budget is spent, or, a part of it
spent, when halving all sides twice has not brought the bound as much nearer to the goal as it is still away: bounds on
small cells approach the supremum in proportion to the sides, so the distance would have fallen to a quarter.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sumformer.certificates.checker.counted.modulus import HELD, Modulus
from sumformer.certificates.checker.interval import Floats

BUDGET = 4_000_000  # pairs of cells of small expressions, fewer of larger ones
PATIENCE = 1 / 8  # of the budget: where cells are large, bounds may stay what they are for a while
PROBED = 8  # cells on which both ways are tried
WORK = 2**29  # numbers of gradients of all sub-trees, in all
Cells = tuple[Floats, Floats]


def bound(modulus: Modulus, goal: float) -> float:
    """≥ the supremum, ≤ goal where that can be shown within the budget."""
    return _Search(modulus, goal).run()


@dataclass
class _Search:
    modulus: Modulus
    goal: float
    spent: int = 0
    history: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.splits = [1] * self.modulus.d
        self.budget = min(BUDGET, WORK // self.modulus.size)

    def run(self) -> float:
        (low, high), settled = self.modulus.start(), 0.0
        bounds = self._bounds(low, high, self.splits)
        while True:
            over = ~(bounds <= self.goal)
            settled = max(settled, float(bounds[~over].max(initial=0.0)))
            low, high, bounds = low[over], high[over], bounds[over]
            if not len(low):
                return settled
            self.history.append(float(bounds.max()))
            refined = None if self._hopeless() else self._refined(low, high, bounds)
            if refined is None:
                return self.history[-1]
            low, high, bounds = refined

    def _refined(self, low: Floats, high: Floats, bounds: Floats) -> tuple[Floats, Floats, Floats] | None:
        """Smaller cells with their bounds; None where that is more than the budget allows."""
        halve, finer = self._choice(low, high, bounds)
        if not halve and finer is None:
            return None
        if halve:
            low, high = self._halves(low, high)
        self.splits = finer or self.splits
        if self.spent + self._pairs(len(low), self.splits) > self.budget:
            return None
        return low, high, self._bounds(low, high, self.splits)

    def _choice(self, low: Floats, high: Floats, bounds: Floats) -> tuple[bool, list[int] | None]:
        """Which of both lowers the worst bounds at least twice as much as the other; both, where neither does."""
        finer, worst = self._finer(), np.argsort(-bounds)[:PROBED]
        low, high, now = low[worst], high[worst], float(bounds.max())
        halves = self._halves(low, high)
        if halves[0] is low or finer is None:
            return halves[0] is not low, finer
        by_x = _drop(now, self._bounds(*halves, self.splits))
        by_y = _drop(now, self._bounds(low, high, finer))
        if max(by_x, by_y) <= 0.01 * (now - self.goal):
            return True, finer
        return 2 * by_x >= by_y, finer if 2 * by_y >= by_x else None

    def _bounds(self, low: Floats, high: Floats, splits: list[int]) -> Floats:
        self.spent += self._pairs(len(low), splits)
        return self.modulus.lengths(low, high, splits)

    def _pairs(self, cells: int, splits: list[int]) -> int:
        return (cells if self.modulus.mixing else 1) * int(np.prod(splits)) + cells

    def _finer(self) -> list[int] | None:
        """Twice as many cells along the axis that has the fewest; None where all of one row cannot be held."""
        axes = self.modulus.y_axes
        if not axes or 2 * int(np.prod(self.splits)) * self.modulus.size > HELD:
            return None
        axis = min(axes, key=lambda c: self.splits[c])
        return [k * (1 + (c == axis)) for c, k in enumerate(self.splits)]

    def _halves(self, low: Floats, high: Floats) -> Cells:
        """Across the widest side that the expression reads, relative to the box; n by its logarithm."""
        m = self.modulus
        first, last = m.start()
        relative = np.zeros(low.shape)
        for c in m.axes:
            relative[:, c] = (high[:, c] - low[:, c]) / max(last[0, c] - first[0, c], 1e-300)
        if m.counted:
            relative[:, -1] = np.log(high[:, -1] / low[:, -1])
        rows = np.flatnonzero(relative.max(axis=1) > 2.0**-40)
        if not len(rows):
            return low, high
        side = relative[rows].argmax(axis=1)
        a, b = low[rows, side], high[rows, side]
        counts = side == m.d
        middle = np.where(counts, np.floor(np.sqrt(np.abs(a * b))), a / 2 + b / 2)
        first_high, second_low = high.copy(), low[rows]
        first_high[rows, side] = middle
        second_low[np.arange(len(rows)), side] = np.where(counts, middle + 1, middle)
        return np.concatenate([low, second_low]), np.concatenate([first_high, high[rows]])

    def _hopeless(self) -> bool:
        now, m = self.history[-1], self.modulus
        window = 2 * (len(m.axes) + m.counted + len(m.y_axes)) + 1
        if len(self.history) <= window or self.spent < PATIENCE * self.budget or not np.isfinite(now):
            return False
        return not self.history[-1 - window] - now >= now - self.goal


def _drop(before: float, bounds: Floats) -> float:
    after = float(bounds.max())
    return 0.0 if after == before else before - after
