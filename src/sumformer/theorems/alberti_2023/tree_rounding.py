"""sup |fl(f(X)_1) − f(X)_1| for the target's tree evaluated as written: each operation rounds, sums in any order.

Tracked values over cells of x; a body over cells of (x, y), the worst over y. With m tokens in a sum,
  |fl(Σ e_j) − Σ e_j| ≤ m·err + γ_{m−1}·m·(|e| + err).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

from sumformer.algebra.interval import Interval
from sumformer.algebra.rounding import gamma
from sumformer.algebra.tracked import INFLATE, Tracked, TrackedOperations
from sumformer.errors import DomainError, RefusedError
from sumformer.targets import Environment, Reduce, evaluate, reductions
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.ranges import reduction_ranges

PAIRS = 2**12


def tree_rounding(f: Target, arithmetic: Arithmetic) -> float:
    """The bound, the last rounding to the output's dtype included; refuses where a value may not exist."""
    cells = Cells(f.box, PAIRS)
    ranges = reduction_ranges(f.expression, cells, f.tokens)
    ops = TrackedOperations(arithmetic.u, arithmetic.tiny, arithmetic.huge)
    return rounded_out(lambda: _tracked(f, cells, ops, ranges), arithmetic)


def rounded_out(track: Callable[[], Tracked], arithmetic: Arithmetic) -> float:
    """The largest error of what is tracked, after the rounding to the output's dtype."""
    try:
        result = track()
    except DomainError as left:  # not f itself: its parts exist
        away = "a smaller box, a wider kernel or an offset keeps divisors, and what is under log or a root, away from 0"
        more = ["dtype float64 rounds less"] if arithmetic.u > 2**-50 else []
        raise RefusedError(f"rounding in {arithmetic.name} may leave this target's domain", [away, *more]) from left
    error, largest = float(result.error.max()), float(result.magnitude.max())
    if arithmetic.u_out:
        error += arithmetic.u_out * (largest + error) + arithmetic.tiny_out
    if not largest + error <= arithmetic.huge_out:
        raise DomainError(f"values up to {largest:.3g} with rounding {error:.3g} leave {arithmetic.name}")
    return error * INFLATE


def _tracked(f: Target, cells: Cells, ops: TrackedOperations, ranges: Mapping[Reduce, Interval]) -> Tracked:
    """f over the x-cells."""
    values: dict[Reduce, Tracked] = {}
    for part in reductions(f.expression):
        values[part] = _reduced(part, f, cells, ops, ranges[part], values)
    x = Tracked(cells.x, np.zeros(cells.x.shape))
    return evaluate(f.expression, ops, Environment(x=x, reduce=values.__getitem__))


def _reduced(
    part: Reduce, f: Target, cells: Cells, ops: TrackedOperations, value: Interval, known: dict[Reduce, Tracked]
) -> Tracked:
    """The reduction over the x-cells: (cells, width)."""

    def inner(node: Reduce) -> Tracked:
        return Tracked(known[node].range[:, None], known[node].error[:, None])

    x, y = cells.x[:, None], cells.y[None, :]
    tokens = Environment(x=Tracked(x, np.zeros(x.shape)), y=Tracked(y, np.zeros(y.shape)), reduce=inner)
    body = evaluate(part.body, ops, tokens)
    shape = (x.shape[0], y.shape[1], part.width)
    error = np.broadcast_to(body.error, shape).max(axis=1)
    size = np.broadcast_to(body.magnitude, shape).max(axis=1) + error
    if part.kind in ("max", "min"):
        return Tracked(value, error)
    m = f.tokens.maximum - part.kind.endswith("_others")
    total = m * (error + gamma(max(m - 1, 0), ops.u) * size + ops.tiny) * INFLATE
    if part.kind.startswith("sum"):
        return Tracked(value, np.where(m * size <= ops.huge, total, np.inf))
    # the mean is the sum over its number of terms, one rounding more; error and size per term, for every m asked for
    mean = Tracked(value * m, np.where(m * size <= ops.huge, total, np.inf))
    return Tracked(value, ops.div(mean, ops.const(Fraction(m))).error)
