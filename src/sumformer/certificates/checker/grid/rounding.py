"""sup |fl(f(X)_i) − f(X)_i| for the tree as written, sums over tokens in any order, the tokens themselves exact.

Tracked values on cells of x; a body on cells of (x, y), the worst over y, which covers y = x. With k tokens,
  |fl(Σ e_j) − Σ e_j| ≤ k·err + γ_{k−1}·k·(|e| + err); a mean is divided by k, one rounding more.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import numpy as np

from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.interval import Interval, IntervalOperations, from_fraction
from sumformer.certificates.checker.token_values import body_value, leaf_at
from sumformer.certificates.checker.tracked import Tracked, TrackedOperations
from sumformer.certificates.checker.tree_values import components
from sumformer.targets.target import Target
from sumformer.targets.tree import Reduce
from sumformer.targets.walk import reductions

PAIRS = 2**12  # cells of (x, y)
_REAL = IntervalOperations()


def rounding(f: Target, name: str) -> float:
    """The bound in the arithmetic `name`, the last rounding to the output's dtype included."""
    a = Arithmetic.named(name)
    ops = TrackedOperations(a)
    cells = _cells(f, max(1, int(PAIRS ** (1 / (2 * f.d)))))
    own = [Tracked(Interval(v.lo[:, None], v.hi[:, None]), np.asarray(0.0)) for v in cells]
    other = [Tracked(Interval(v.lo[None], v.hi[None]), np.asarray(0.0)) for v in cells]
    count = len(cells[0].lo)
    known: dict[Reduce, list[Tracked]] = {}
    for part in reductions(f.expression):
        known[part] = [_reduced(part, f, ops, e, count) for e in body_value(part, ops, own, other, known)]

    values = components(f.expression, ops, leaf_at(own, None, known))
    return max(a.rounded_out(float(v.error.max()), float(v.value.magnitude.max())) for v in values) * (1 + 1e-9)


def _cells(f: Target, splits: int) -> list[Interval]:
    """Coordinate by coordinate, (splits^d,)."""
    sides = []
    for low, high in zip(f.box.lower, f.box.upper, strict=True):
        ends = [from_fraction(low + (high - low) * Fraction(k, splits)) for k in range(splits + 1)]
        sides.append([(float(a.lo), float(b.hi)) for a, b in pairwise(ends)])
    grid = np.array(list(product(*sides)))  # (cells, d, 2)
    return [Interval(grid[:, c, 0], grid[:, c, 1]) for c in range(f.d)]


def _reduced(part: Reduce, f: Target, ops: TrackedOperations, e: Tracked, cells: int) -> Tracked:
    """⊕ over the tokens, on the cells of x: (cells, 1)."""
    lo, hi, error = (np.broadcast_to(v, (cells, cells)) for v in (e.value.lo, e.value.hi, e.error))
    range_ = Interval(lo.min(axis=1, keepdims=True), hi.max(axis=1, keepdims=True))
    err = error.max(axis=1, keepdims=True)
    if part.kind in ("max", "min"):
        return Tracked(range_, err)
    least, most = (k - part.kind.endswith("_others") for k in (f.tokens.minimum, f.tokens.maximum))
    size = range_.magnitude + err
    each = err + ops.a.gamma(max(most - 1, 0)) * size + ops.a.tiny
    fits = 2 * most * size < ops.a.huge
    if part.kind.startswith("mean"):
        error = each + ops.a.u * (size + each) + ops.a.tiny
        return Tracked(range_, np.where(fits, error, np.inf))
    counts = Interval(np.asarray(float(least)), np.asarray(float(most)))
    return Tracked(_REAL.mul(counts, range_), np.where(fits, most * each * (1 + 1e-12), np.inf))
