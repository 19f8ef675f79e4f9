"""sup of a modulus over all cells: cells of x (and n) are halved, y's grid made finer, what inner reductions may be cut
into more pieces, whichever lowers the bound more.

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
PIECES = 2**10  # of what inner reductions may be, together
WORK = 2**29  # numbers of gradients of all sub-trees, in all
Cells = tuple[Floats, Floats]


def bound(modulus: Modulus, goal: float) -> float:
    """≥ the supremum, ≤ goal where that can be shown within the budget."""
    return _Search(modulus, goal).run()


@dataclass(frozen=True)
class Grid:
    """Cells of y along each coordinate, and pieces of what inner reductions may be."""

    splits: tuple[int, ...]
    pieces: int


@dataclass
class _Search:
    modulus: Modulus
    goal: float
    spent: int = 0
    history: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.grid = Grid((1,) * self.modulus.d, 1)
        self.budget = min(BUDGET, WORK // self.modulus.size)

    def run(self) -> float:
        (low, high), settled = self.modulus.start(), 0.0
        bounds = self._bounds(low, high, self.grid)
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
        if not halve and finer == self.grid:
            return None
        if halve:
            low, high = self._halves(low, high)
        self.grid = finer
        if self.spent + self._pairs(len(low), self.grid) > self.budget:
            return None
        return low, high, self._bounds(low, high, self.grid)

    def _choice(self, low: Floats, high: Floats, bounds: Floats) -> tuple[bool, Grid]:
        """Which ways lower the worst bounds at least half as much as the best way; all of them, where none does."""
        worst = np.argsort(-bounds)[:PROBED]
        low, high, now = low[worst], high[worst], float(bounds.max())
        halves, finer, more = self._halves(low, high), self._finer(), self._more()
        drops = {
            "x": 0.0 if halves[0] is low else _drop(now, self._bounds(*halves, self.grid)),
            "y": 0.0 if finer is None else _drop(now, self._bounds(low, high, Grid(finer, self.grid.pieces))),
            "pieces": 0.0 if more is None else _drop(now, self._bounds(low, high, Grid(self.grid.splits, more))),
        }
        best = max(drops.values())
        taken = {way for way, drop in drops.items() if best <= 0.01 * (now - self.goal) or 2 * drop >= best}
        splits = finer if finer is not None and "y" in taken else self.grid.splits
        pieces = more if more is not None and "pieces" in taken else self.grid.pieces
        return "x" in taken and halves[0] is not low, Grid(splits, pieces)

    def _bounds(self, low: Floats, high: Floats, grid: Grid) -> Floats:
        self.spent += self._pairs(len(low), grid)
        return self.modulus.lengths(low, high, list(grid.splits), grid.pieces)

    def _pairs(self, cells: int, grid: Grid) -> int:
        return (cells if self.modulus.mixing else 1) * int(np.prod(grid.splits)) * grid.pieces + cells

    def _finer(self) -> tuple[int, ...] | None:
        """Twice as many cells along the axis that has the fewest; None where all of one row cannot be held."""
        axes, splits = self.modulus.y_axes, self.grid.splits
        if not axes or 2 * int(np.prod(splits)) * self.modulus.size > HELD:
            return None
        axis = min(axes, key=lambda c: splits[c])
        return tuple(k * (1 + (c == axis)) for c, k in enumerate(splits))

    def _more(self) -> int | None:
        """More pieces; None where nothing stands inside another, or there are enough."""
        return self.modulus.more(self.grid.pieces, PIECES)

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
        window = 2 * (len(m.axes) + m.counted + len(m.y_axes) + m.nested) + 1
        if len(self.history) <= window or self.spent < PATIENCE * self.budget or not np.isfinite(now):
            return False
        return not self.history[-1 - window] - now >= now - self.goal


def _drop(before: float, bounds: Floats) -> float:
    after = float(bounds.max())
    return 0.0 if after == before else before - after
