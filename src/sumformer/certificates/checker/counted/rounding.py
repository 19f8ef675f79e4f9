"""sup |fl(N(X)_i) − N(X)_i| for the tree as written: bodies at centres, which are exact, each times its count.

Tracked values on cells of (x, m_p, m_j), m_p within r of x. Of ê_j = e_j + err the products with counts c_j ≥ 0,
Σ c_j = n, are rounded, and the k = min(K, n) of them that are not 0 added in any order:
  |fl(Σ c_j ê_j) − Σ c_j e_j| ≤ n·err + γ_k·n·(|e| + err) + 2k·tiny; a mean is divided by n, one rounding more.
Where sums are left, n lies in ranges of ratio 9/8.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.counted.modulus import ends, widened
from sumformer.certificates.checker.counted.network import Network
from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations
from sumformer.certificates.checker.token_values import body_value, leaf_at
from sumformer.certificates.checker.tracked import Tracked, TrackedOperations
from sumformer.certificates.checker.tree_values import components
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.domain import Box
from sumformer.targets.target import Target
from sumformer.targets.tree import Reduce
from sumformer.targets.walk import reductions

PAIRS = (2**8, 2**12, 2**17)  # cells of (x, y), the next where the last do not reach the goal
_REAL = IntervalOperations()


def rounding(f: Target, net: Network, radii: Floats, goal: float) -> float:
    """The bound in the network's arithmetic, the last rounding to the output's dtype included."""
    found = math.inf
    for pairs in PAIRS:
        try:
            found = min(found, _on_cells(f, net, radii, pairs))
        except Unproved:
            if pairs == PAIRS[-1] and found == math.inf:
                raise
        if found <= goal:
            break
    return found


def _on_cells(f: Target, net: Network, radii: Floats, pairs: int) -> float:
    sums = any(part.kind.startswith("sum") for part in reductions(net.expression))
    cells = _cells(f.box, max(1, int(pairs ** (1 / (2 * f.d)) + 1e-9)))
    least, most = f.tokens.minimum, f.tokens.maximum
    return max(_Rounding(net, cells, f.box, radii, n).bound() for n in (_ranges(least, most) if sums else [(1, most)]))


def _ranges(least: int, most: int) -> list[tuple[int, int]]:
    out = []
    while least <= most:
        last = min(most, least * 9 // 8)
        out.append((least, last))
        least = last + 1
    return out


def _cells(box: Box, splits: int) -> list[Interval]:
    """Coordinate by coordinate, (splits^d,)."""
    low, high = ends(box)
    sides = [np.linspace(a, b, splits + 1) for a, b in zip(low, high, strict=True)]
    places = np.array(list(product(range(splits), repeat=box.d)))
    return [Interval(side[k], side[k + 1]) for side, k in zip(sides, places.T, strict=True)]


class _Rounding:
    """For n[0] ≤ n ≤ n[1] tokens."""

    def __init__(self, net: Network, cells: list[Interval], box: Box, radii: Floats, n: tuple[int, int]) -> None:
        self.net, self.n, self.cells, self.box, self.radii = net, n, cells, box, radii
        self.a = Arithmetic.named(net.arithmetic)

    def bound(self) -> float:
        ops = TrackedOperations(self.a)
        zero = np.asarray(0.0)
        low, high = (np.stack([getattr(v, end) for v in self.cells], axis=1) for end in ("lo", "hi"))
        near = widened(low, high, self.radii, self.box)
        x = [Tracked(Interval(v.lo[:, None], v.hi[:, None]), zero) for v in self.cells]
        own = [Tracked(Interval(v.lo[:, None], v.hi[:, None]), zero) for v in near]
        y = [Tracked(Interval(v.lo[None], v.hi[None]), zero) for v in self.cells]
        known: dict[Reduce, list[Tracked]] = {}
        for part in reductions(self.net.expression):
            known[part] = [self._reduced(part, ops, e) for e in body_value(part, ops, own, y, known)]
        return max(map(self._output, components(self.net.expression, ops, leaf_at(x, None, known)))) * (1 + 1e-9)

    def _output(self, value: Tracked) -> float:
        error, size = float(value.error.max()), float(value.value.magnitude.max())
        if math.isnan(error + size):
            return math.inf
        if self.a.output is None:
            return error
        u, tiny, huge = self.a.output
        return error + u * (size + error) + tiny if size + error < huge else math.inf

    def _reduced(self, part: Reduce, ops: TrackedOperations, e: Tracked) -> Tracked:
        """⊕ over the tokens, on the cells of x: (cells or 1, 1)."""
        range_ = Interval(np.atleast_2d(e.value.lo), np.atleast_2d(e.value.hi)).hull((1,))
        err = np.atleast_2d(e.error).max(axis=1, keepdims=True)
        if part.kind in ("max", "min"):
            return Tracked(range_, err)
        least, most = (k - part.kind.endswith("_others") for k in self.n)
        size = range_.magnitude + err
        each = (err + ops.a.gamma(min(self.net.latent_dimension, most)) * size + 2 * ops.a.tiny) * (1 + 1e-12)
        fits = 2 * most * (size + each) < ops.a.huge
        if part.kind.startswith("mean"):
            error = each + ops.a.u * (size + each) + ops.a.tiny
            return Tracked(range_, np.where(fits, error, np.inf))
        counts = Interval(np.asarray(float(least)), np.asarray(float(most)))
        return Tracked(_REAL.mul(counts, range_), np.where(fits, most * each * (1 + 1e-12), np.inf))
