"""sup |fl(N(X)_i) − N(X)_i| for the tree as written: bodies at centres, which are exact, each times its count.

Tracked values on cells of (x, m_p, m_j), m_p within r of x. Of ê_j = e_j + err the products with counts c_j ≥ 0,
Σ c_j = n, are rounded, and the k = min(K, n) of them that are not 0 added in any order:
  |fl(Σ c_j ê_j) − Σ c_j e_j| ≤ Σ c_j E_j,   E = err + γ_k (|e| + err) + 2 tiny
and a mean is divided by n, one rounding more. Of a quotient q = Σ c w a/Σ c w, w of one sign, whose sums err by E and
E' < |w| for each token, what is left is at most
  Σ c (E + |q| E')/Σ c (|w| − E') ≤ max_j (E_j + |q| E'_j)/(|w_j| − E'_j),   q in the hull of a.
Where sums are left, n lies in ranges of ratio 9/8.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.counted.mixture import over_y, worst
from sumformer.certificates.checker.counted.modulus import ends, widened
from sumformer.certificates.checker.counted.network import Network
from sumformer.certificates.checker.grid.weighted_mean import WeightedMean, weighted_mean
from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations
from sumformer.certificates.checker.token_values import value_at
from sumformer.certificates.checker.tracked import Tracked, TrackedOperations
from sumformer.certificates.checker.tree_values import Leaf, components
from sumformer.certificates.checker.upward import over, times
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.domain import Box
from sumformer.targets.node import Node
from sumformer.targets.target import Target
from sumformer.targets.tree import Reduce, Token
from sumformer.targets.walk import postorder, reductions

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
        self.net, self.n, self.ops = net, n, TrackedOperations(Arithmetic.named(net.arithmetic))
        self.a = self.ops.a
        low, high = (np.stack([getattr(v, end) for v in cells], axis=1) for end in ("lo", "hi"))
        self.x = [_exact(v.lo[:, None], v.hi[:, None]) for v in cells]
        self.own = [_exact(v.lo[:, None], v.hi[:, None]) for v in widened(low, high, radii, box)]
        self.y = [_exact(v.lo[None], v.hi[None]) for v in cells]
        found = {part: weighted_mean(part) for part in postorder(net.expression)}
        self.means = {part: mean for part, mean in found.items() if mean is not None}
        self.bodies: dict[Reduce, list[Tracked]] = {}
        self.known: dict[Node, list[Tracked]] = {}

    def bound(self) -> float:
        for part in reductions(self.net.expression):
            self.bodies[part] = components(part.body, self.ops, self._leaf(self.own))
            self.known[part] = [self._reduced(part, e) for e in self.bodies[part]]
        values = components(self.net.expression, self.ops, self._leaf(self.x))
        outputs = [self.a.rounded_out(float(v.error.max()), float(v.value.magnitude.max())) for v in values]
        return max(outputs) * (1 + 1e-9)

    def _leaf(self, here: list[Tracked]) -> Leaf[Tracked]:
        """x is `here`; weighted means are made when they are first met."""

        def leaf(part: Node) -> list[Tracked] | None:
            if isinstance(part, Token):
                return here if part.name == "x" else self.y
            if part in self.means and part not in self.known:
                self.known[part] = self._quotient(self.means[part])
            return self.known.get(part)

        return leaf

    def _per_token(self, kind: str, e: Tracked) -> Floats:
        """What each token adds to the error of a sum, or of a mean, so many times as it counts."""
        most = self.n[1] - kind.endswith("_others")
        size = e.value.magnitude + e.error
        each = (e.error + self.a.gamma(min(self.net.latent_dimension, most)) * size + 2 * self.a.tiny) * (1 + 1e-12)
        fits = 2 * most * (size + each) < self.a.huge
        if kind.startswith("mean"):
            each = (each + self.a.u * (size + each) + self.a.tiny) * (1 + 1e-12)
        return np.where(fits, each, np.inf)

    def _reduced(self, part: Reduce, e: Tracked) -> Tracked:
        """⊕ over the tokens, on the cells of x: (cells or 1, 1)."""
        range_ = over_y(e.value, -1)
        if part.kind in ("max", "min"):
            return Tracked(range_, worst(e.error))
        each = worst(self._per_token(part.kind, e))
        if part.kind.startswith("mean"):
            return Tracked(range_, each)
        least, most = (float(k - part.kind.endswith("_others")) for k in self.n)
        counts = Interval(np.asarray(least), np.asarray(most))
        return Tracked(_REAL.mul(counts, range_), most * each * (1 + 1e-12))

    def _quotient(self, mean: WeightedMean) -> list[Tracked]:
        """Σ c w a/Σ c w, coordinate by coordinate, by the rule for quotients where it may be used and gives less."""
        top, bottom = (self.known[part] * (mean.width // part.width) for part in (mean.top, mean.bottom))
        sharp = [self._weighted(mean, k) for k in range(mean.width)]
        try:
            plain = [self.ops.div(a, b) for a, b in zip(top, bottom, strict=True)]
        except Unproved:
            if any(value is None for value in sharp):
                raise
            return [value for value in sharp if value is not None]
        return [
            p if s is None else Tracked(s.value, np.fmin(s.error, p.error)) for p, s in zip(plain, sharp, strict=True)
        ]

    def _weighted(self, mean: WeightedMean, k: int) -> Tracked | None:
        """By max_j (E_j + |q| E'_j)/(|w_j| − E'_j), where computed weights keep their sign; and the division."""
        w, product = (self.bodies[part][k % part.width] for part in (mean.bottom, mean.top))
        above, below = (self._per_token(mean.top.kind, e) for e in (product, w))
        sign = over_y(w.value, -1)
        if not bool((((sign.lo > 0) | (sign.hi < 0)) & (worst(2 * below / w.value.mignitude) < 1)).all()):
            return None
        try:
            a = self._cofactor(mean, k)
        except Unproved:
            return None
        q = over_y(a, -1)
        error = over((above + times(q.magnitude, below)) * (1 + 1e-12), (w.value.mignitude - below) * (1 - 1e-12))
        return self.ops.rounded(q, worst(error))

    def _cofactor(self, mean: WeightedMean, k: int) -> Interval:
        """a in coordinate k, as a real number."""
        x, y = ([v.value for v in token] for token in (self.own, self.y))
        known = {part: [v.value for v in value] for part, value in self.known.items()}
        result = _REAL.const(mean.constant)
        for u, exponent in mean.rest.items():
            value = value_at(u, _REAL, x, y, known)
            result = _REAL.mul(result, _REAL.power(value[k % len(value)], exponent))
        return result


def _exact(low: Floats, high: Floats) -> Tracked:
    return Tracked(Interval(low, high), np.asarray(0.0))
