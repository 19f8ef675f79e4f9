"""M_v(ρ) = sup |g| over n tokens with one coordinate in the Bernstein ellipse E_ρ and all others real, by bisection.

Rectangles cover the whole ellipse, so a bound proves that g is analytic inside. g is real on the reals, hence
g(z̄) = conj g(z) and the upper half is enough; the real others may be sorted, so boxes that differ by an order of them
are looked at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sumformer.algebra.complex_interval import ComplexInterval
from sumformer.algebra.interval import Interval, concatenate
from sumformer.algebra.interval_operations import ComplexIntervalOperations
from sumformer.algebra.rounding import FloatArray
from sumformer.targets import Node
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.half_ellipse import SLACK, HalfEllipse, bisect
from sumformer.theorems.alberti_2023.token_values import token_value

ROUNDS = 40
MAX_BOXES = 1_500


@dataclass(frozen=True)
class Variable:
    """A coordinate of the own token (`own`), or of one of the others, which are all alike."""

    own: bool
    coordinate: int

    @property
    def name(self) -> str:
        return f"{'x' if self.own else 'y'}[{self.coordinate}]"


def token_ellipse_maximum(expression: Node, box: Box, n: int, variable: Variable, rho: float) -> float | None:
    """M_v(ρ) over all components of g, or None when g could not be shown analytic and bounded there."""
    ellipse = HalfEllipse(rho)
    lo, hi = ellipse.cover(n * box.d - 1)
    best = bound = 0.0  # met at points, and enclosed so far
    for _ in range(ROUNDS):
        inside = ellipse.meets(lo, hi)
        lo, hi = _sorted(lo[inside], hi[inside], box.d, n, variable)
        middle = (lo + hi) / 2
        best = max(best, float(_bounds(expression, box, n, variable, middle, middle)[1].max(initial=0.0)))
        upper, _ = _bounds(expression, box, n, variable, lo, hi)
        open_ = ~(upper <= max(SLACK * best, 1e-300))
        bound = max(bound, float(upper[~open_].max(initial=0.0)))
        if not open_.any():
            return bound
        if 2 * int(open_.sum()) > MAX_BOXES:
            break
        lo, hi = lo[open_], hi[open_]
        lo, hi = bisect(lo, hi, _side(expression, box, n, variable, lo, hi, ellipse.widths(lo, hi)))
    return None


def _sorted(lo: FloatArray, hi: FloatArray, d: int, n: int, variable: Variable) -> tuple[FloatArray, FloatArray]:
    """Every set of boxes of the wholly real others once."""
    alike = n - 1 if variable.own else n - 2
    if alike < 2:
        return lo, hi
    first = lo.shape[1] - alike * d
    cells = np.concatenate([lo[:, first:].reshape(-1, alike, d), hi[:, first:].reshape(-1, alike, d)], axis=2)
    keys = cells @ (1.0 + np.arange(1, 2 * d + 1) * math.sqrt(2) / 7)  # any order will do, if equal boxes have one
    order = np.argsort(keys, axis=1)
    cells = np.take_along_axis(cells, order[:, :, None], axis=1)
    whole = np.concatenate(
        [lo[:, :first], hi[:, :first], cells[:, :, :d].reshape(len(lo), -1), cells[:, :, d:].reshape(len(lo), -1)],
        axis=1,
    )
    whole = np.unique(whole, axis=0)
    reals = alike * d
    low = np.concatenate([whole[:, :first], whole[:, 2 * first : 2 * first + reals]], axis=1)
    high = np.concatenate([whole[:, first : 2 * first], whole[:, 2 * first + reals :]], axis=1)
    return low, high


def _side(
    expression: Node, box: Box, n: int, variable: Variable, lo: FloatArray, hi: FloatArray, width: FloatArray
) -> NDArray[np.intp]:
    """Which side to bisect: one that alone, all others at their middle, widens the enclosure most; then the widest."""
    sides = lo.shape[1]
    middle = np.repeat(((lo + hi) / 2)[None], sides, axis=0)
    low, high = middle.copy(), middle
    for side in range(sides):
        low[side, :, side], high[side, :, side] = lo[:, side], hi[:, side]
    value = _values(expression, box, n, variable, low.reshape(-1, sides), high.reshape(-1, sides))
    alone = np.where(value.defined, value.width(), np.inf).max(axis=1).reshape(sides, -1).T
    worst = alone >= 0.7 * alone.max(axis=1, keepdims=True)
    return np.asarray(np.where(worst, width, 0.0).argmax(axis=1))


def _bounds(
    expression: Node, box: Box, n: int, variable: Variable, lo: FloatArray, hi: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """max over components of an upper and of a lower bound of |g| on each box; ∞ and 0 where g may be undefined."""
    value = _values(expression, box, n, variable, lo, hi)
    modulus, defined = value.modulus(), value.defined.all(axis=1)
    return np.where(defined, modulus.hi.max(axis=1), np.inf), np.where(defined, modulus.lo.max(axis=1), 0.0)


def _values(expression: Node, box: Box, n: int, variable: Variable, lo: FloatArray, hi: FloatArray) -> ComplexInterval:
    """g on the boxes: columns are Re and Im of the complex coordinate, the rest of its token, then the other tokens."""
    d, c = box.d, variable.coordinate
    low, high = (np.delete(v, 1, axis=1) for v in (lo, hi))  # the complex token first, its real coordinates in order
    order = [*range(1, c + 1), 0, *range(c + 1, d)]
    low[:, :d], high[:, :d] = low[:, order], high[:, order]
    radius, centre = (_row([Interval.from_fraction(q) for q in side]) for side in (box.radius, box.centre))
    tokens = radius * Interval(*(v.reshape(-1, n, d).swapaxes(0, 1) for v in (low, high))) + centre  # (n, boxes, d)
    rise = np.zeros((2, n, len(lo), d))
    rise[:, 0, :, c] = lo[:, 1], hi[:, 1]
    every = ComplexInterval(tokens, radius * Interval(rise[0], rise[1]))
    own = every[0] if variable.own else every[1]
    others = every[1:] if variable.own else every[np.array([0, *range(2, n)])]
    value: ComplexInterval = token_value(expression, ComplexIntervalOperations(), own, others, n - 1)
    return value


def _row(entries: list[Interval]) -> Interval:
    return concatenate([entry[None] for entry in entries])
