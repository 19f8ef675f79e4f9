"""L_c ≥ sup |∂k/∂z_c| over all differences of two points of the box, |z_b| ≤ 2·radius_b, by interval slopes.

A kernel with corners is linear between two nodes but for L_c h/2: |g(r) − (1 − r) g(0) − r g(1)| ≤ 2r(1 − r) L_c h.
"""

from __future__ import annotations

import numpy as np

from sumformer.algebra.interval import Interval
from sumformer.algebra.rounding import FloatArray, fraction_bounds
from sumformer.algebra.slope import SlopeOperations
from sumformer.targets import Node
from sumformer.targets.domain import Box
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.theorems.alberti_2023.half_ellipse import bisect

FACTOR = 1.05  # of what some point attains
BOXES = 2**14
_EACH = 8  # pieces of a side to begin with


def steepness(kernel: Node, box: Box, c: int) -> float | None:
    """L_c of a kernel of differences, k(x) for x = z; None where no bound was found."""
    ends = [fraction_bounds(2 * r)[1] for r in box.radius]
    grid = np.meshgrid(*[np.arange(_EACH) for _ in ends], indexing="ij")
    corner = np.stack([g.ravel() for g in grid], axis=-1) / _EACH
    size = 2 * np.array(ends)
    lo, hi = corner * size - ends, (corner + 1 / _EACH) * size - ends
    attained = settled = 0.0
    spent = 0
    while len(lo):
        upper, below = _slopes(kernel, c, lo, hi)
        spent += len(lo)
        attained = max(attained, below)
        over = ~(upper <= FACTOR * attained)
        settled = max(settled, float(upper[~over].max(initial=0.0)))
        if not over.any() or spent + 2 * int(over.sum()) > BOXES:
            settled = max(settled, float(upper.max(initial=0.0)))
            break
        lo, hi = lo[over], hi[over]
        lo, hi = bisect(lo, hi, ((hi - lo) / size).argmax(axis=1))
    return settled if np.isfinite(settled) else None


def _slopes(kernel: Node, c: int, lo: FloatArray, hi: FloatArray) -> tuple[FloatArray, float]:
    """The bound on every box, and the steepest slope at their middles, from below."""
    middle = 0.5 * lo + 0.5 * hi
    upper, _ = _slope(kernel, c, lo, hi)
    _, below = _slope(kernel, c, middle, middle)
    return upper, float(below.max())


def _slope(kernel: Node, c: int, lo: FloatArray, hi: FloatArray) -> tuple[FloatArray, FloatArray]:
    d = lo.shape[1]
    moving = np.zeros((1, d))
    moving[0, c] = 1.0
    ops = SlopeOperations(moving)
    x = ops.variable(Interval(lo, hi), range(d), moving[0])
    found = evaluate(kernel, ops, Environment(x=x))
    gradient = found.gradient.broadcast_to((len(lo), 1, d))
    least = np.maximum(np.maximum(gradient.lo, -gradient.hi), 0.0)[:, 0, c]
    length = np.broadcast_to(found.length, (len(lo), 1))[:, 0]
    return np.where(np.isnan(length), np.inf, length), least
