"""sup over x and μ of how far f moves (`mixture_slopes.py`), from above, on ever finer grids of cells of x and y."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sumformer.algebra.rounding import FloatArray
from sumformer.errors import InputError, RefusedError
from sumformer.targets.coordinatewise import components, coordinatewise, on_coordinates, read
from sumformer.targets.domain import Box, Tokens
from sumformer.targets.homogeneity import cancelled
from sumformer.targets.mixture_slopes import PAIRS, MixtureSlopes, cells_of, splits_of
from sumformer.targets.node import Node
from sumformer.targets.target import Target
from sumformer.targets.walk import reductions

FIRST, MOST = 2**12, PAIRS  # pairs of a cell of x and a cell of y: of the first attempt, and of the finest
NESTED = 4  # times as many where pieces multiply them
CHUNK = 2**13  # at a time
PIECES = (1, 8, 64)  # of the ranges of inner reductions together
GAIN = 0.97  # a finer attempt that gains less is the last


def mixture_modulus(f: Target, weights: Sequence[float], most: int = MOST) -> float:
    """≥ sup |f(x, μ) − f'| over the box, f' with x' and all y inside reductions moved within it by at most `weights`.

    The largest over the coordinates of f, each with the coordinates of tokens that it reads; a `RefusedError` where no
    slope bound exists.
    """
    omega = np.asarray(weights, dtype=np.float64)
    if omega.shape != (f.d,) or not bool((omega >= 0).all() and np.isfinite(omega).all()):
        raise InputError(f"mixture_modulus: expected {f.d} finite weights ≥ 0, got {weights}")
    alike: dict[tuple[object, ...], _Grids] = {}
    for part in _by_coordinates(coordinatewise(cancelled(f.expression))):
        kept = sorted(read(part, "x") | read(part, "y"))
        if kept:
            box = Box(tuple(f.box.lower[c] for c in kept), tuple(f.box.upper[c] for c in kept))
            small = part if len(kept) == f.d else on_coordinates(part, kept)
            alike[small, box, tuple(omega[kept])] = _Grids(small, box, omega[kept], f.tokens)
    return max((grids.bound(most) for grids in alike.values()), default=0.0)


def _by_coordinates(expression: Node) -> Sequence[Node]:
    """Coordinate by coordinate where they read different coordinates of tokens, else all at once."""
    parts = components(expression)
    everything = [read(expression, name) for name in ("x", "y")]
    return [expression] if all([read(part, name) for name in ("x", "y")] == everything for part in parts) else parts


@dataclass(frozen=True)
class _Grids:
    """Equal cells of one box for x and for y."""

    expression: Node
    box: Box
    omega: FloatArray
    tokens: Tokens

    def bound(self, most: int) -> float:
        """More pairs of cells, then more pieces, as long as they help."""
        nested = any(reductions(part.body) for part in reductions(self.expression))
        best, reasons = np.inf, dict[str, None]()
        for pieces in PIECES if nested else PIECES[:1]:
            before, pairs = best, FIRST
            while pairs * pieces <= most * (NESTED if pieces > 1 else 1):
                found = self._with(pairs, pieces, reasons)
                helped = found < GAIN * best
                best, pairs = min(best, found), pairs * 4
                if not helped and np.isfinite(best):
                    break
            if not best < GAIN * before and np.isfinite(best):
                break
        if not np.isfinite(best):
            raise RefusedError("no modulus of continuity could be certified on this box", list(reasons))
        return best

    def _with(self, pairs: int, pieces: int, reasons: dict[str, None]) -> float:
        reasons.clear()
        y = cells_of(self.box, splits_of(pairs, self.box.d))
        size = max(1, CHUNK // len(y.lo))
        worst = 0.0
        for start in range(0, len(y.lo), size):
            slopes = MixtureSlopes(self.box, y[start : start + size], y, self.omega, self.tokens, pieces)
            with np.errstate(all="ignore"):  # what overflows has no bound
                lengths = slopes.of(self.expression)
            worst = max(worst, float(np.max(np.where(np.isnan(lengths), np.inf, lengths))))
            reasons.update(slopes.reasons)
        return worst
