"""How far f moves when x and every y inside its reductions move by at most ω_c in coordinate c, whatever n is.

f(x, μ) = h(x, R_1(x', μ), …), x' = x at first: x itself stays, x' and the tokens y of μ move, along straight lines.
A mean of bodies e(x', y) is a mixture of them, and so is the derivative of a maximum; with the cells of y as y's,
  R ∈ hull_y e,   ∂R/∂x' ∈ hull_y ∂e/∂x',   |R moved by the tokens| ≤ max_y (Σ_c ω_c |∂e/∂y_c| + inner reductions').
x' is one vector, so what it does to two reductions may cancel. Every token moves by itself, and two reductions weigh
them differently: what tokens do is a radius, which adds up. Sums are n times a mean; else nothing here depends on n.

f = Σ w a/Σ w, w of one sign, with p = w/Σ w is the mean Σ p a, and moves by Σ p (∂a + (a − f) ∂log|w|), as in
`normalised_slopes.py`. Where a ranges over r_a and ∂log|w|/∂x'_c over r_c, however p is, the covariance
Σ p (a − f) ∂log|w|/∂x'_c is at most r_a r_c/4, and Σ p |a − f| at most r_a/2.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import product

import numpy as np

from sumformer.algebra.interval import Interval, select
from sumformer.algebra.rounding import FloatArray, down, fraction_bounds, up
from sumformer.algebra.slope import Slope, SlopeOperations, times
from sumformer.algebra.tracked import INFLATE
from sumformer.errors import InputError, RefusedError, TargetError
from sumformer.targets.domain import Box, Tokens
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.targets.homogeneity import without_counts
from sumformer.targets.node import Node
from sumformer.targets.normalised_slopes import log_of, weighted_mean
from sumformer.targets.target import Target
from sumformer.targets.tree import Reduce
from sumformer.targets.walk import postorder, reductions

FIRST, LAST = 2**12, 2**18  # pairs of a cell of x and a cell of y: of the first attempt, and of the finest
CHUNK = 2**13  # of them at a time
GAIN = 0.97  # a finer attempt that gains less is the last


def measure_modulus(f: Target, weights: Sequence[float], most: int = LAST) -> float:
    """≥ sup |f(x, μ) − f'| over the box, f' with x' and all y inside reductions moved within it by at most `weights`.

    A `RefusedError` where no slope bound exists; a finer grid of cells is tried while that helps.
    """
    omega = np.asarray(weights, dtype=np.float64)
    if omega.shape != (f.d,) or not bool((omega >= 0).all() and np.isfinite(omega).all()):
        raise InputError(f"measure_modulus: expected {f.d} finite weights ≥ 0, got {weights}")
    expression = f.expression
    with suppress(TargetError):  # the same function, where n cancels
        expression = without_counts(expression)
    best, pairs, reasons = np.inf, FIRST, dict[str, None]()
    while pairs <= most:
        found = _on_grid(f, expression, omega, pairs, reasons)
        stuck = found > GAIN * best
        best, pairs = min(best, found), pairs * 4
        if stuck and np.isfinite(best):
            break
    if not np.isfinite(best):
        raise RefusedError("no modulus of continuity could be certified on this box", list(reasons))
    return best


def _on_grid(f: Target, expression: Node, omega: FloatArray, pairs: int, reasons: dict[str, None]) -> float:
    """The bound by so many pairs of equal cells."""
    reasons.clear()
    y = cells_of(f.box, splits_of(pairs, f.d))
    size = max(1, CHUNK // len(y.lo))
    worst = 0.0
    for start in range(0, len(y.lo), size):
        slopes = MeasureSlopes(f.box, y[start : start + size], y, omega, f.tokens)
        worst = max(worst, float(np.max(slopes.of(expression).length)))
        reasons.update(slopes.reasons)
    return worst


def splits_of(pairs: int, d: int) -> int:
    """Cells along a side for about so many pairs of x and y; one where two are more than `LAST`."""
    wanted = max(2, round(pairs ** (1 / (2 * d))))
    return wanted if wanted ** (2 * d) <= LAST else 1


def cells_of(box: Box, splits: int) -> Interval:
    """A product grid over the box, (splits^d, d)."""
    columns = []
    for a, b in zip(box.lower, box.upper, strict=True):
        ends = [fraction_bounds(a + (b - a) * k / splits) for k in range(splits + 1)]
        columns.append([(ends[k][0], ends[k + 1][1]) for k in range(splits)])
    cells = np.array(list(product(*columns)), dtype=np.float64)
    return Interval(cells[..., 0], cells[..., 1])


def widened(x: Interval, box: Box, omega: FloatArray) -> Interval:
    """Where x' may be: within ω of x, and in the box."""
    low = [fraction_bounds(a)[0] for a in box.lower]
    high = [fraction_bounds(b)[1] for b in box.upper]
    return Interval(np.maximum(down(x.lo - omega), low), np.minimum(up(x.hi + omega), high))


class MeasureSlopes:
    """One evaluation: x over cells (P, d), every y over the cells (Q, d), ω (d,).

    The variables of a reduction are x' and one for all tokens, whose gradient is a radius, symmetric about 0, with
    weight 1; those of a body are these two and its y.
    """

    def __init__(self, box: Box, x: Interval, y: Interval, omega: FloatArray, tokens: Tokens) -> None:
        self.x, self.inside, self.y = x, widened(x, box, omega), y
        self.omega, self.tokens, self.d = omega, tokens, len(omega)
        self.ops = SlopeOperations(np.append(omega, 1.0)[None])
        self.reasons = self.ops.reasons
        self.known: dict[Reduce, Slope] = {}
        self.means: dict[Node, Slope] = {}
        self.env = Environment(x=self.ops.variable(self.x, None, 0.0), reduce=self.known.__getitem__)

    def of(self, expression: Node) -> Slope:
        """The slopes of f, x itself held fast."""
        for part in reductions(expression):
            self.known[part] = self._scaled(part.kind, self._mixed(self._body(part.body, part.width)))
        return evaluate(expression, self.ops, self.env, self._means_in(expression))

    def _means_in(self, expression: Node) -> dict[Node, Slope]:
        """The weighted means that stand in it, outside further reductions."""
        found = [n for n in postorder(expression, into_reductions=False) if weighted_mean(n) is not None]
        for node in found:
            if node not in self.means:
                self.means[node] = self._weighted_mean(node, evaluate(node, self.ops, self.env))
        return {node: self.means[node] for node in found}

    def _body(self, node: Node, width: int) -> Slope:
        """e(x', y, R) on all pairs of cells: (P, Q, width)."""
        d = self.d
        ops = SlopeOperations(np.concatenate([self.omega, [1.0], self.omega])[None, None])
        x = ops.variable(self.inside[:, None], range(d), self.omega)
        y = ops.variable(self.y[None], range(d + 1, 2 * d + 1), self.omega)
        inner = postorder(node, into_reductions=False)
        reduced = {r: self._across(self.known[r], r.width) for r in inner if isinstance(r, Reduce)}
        means = {mean: self._across(slope, mean.width) for mean, slope in self._means_in(node).items()}
        result = evaluate(node, ops, Environment(x=x, y=y, reduce=reduced.__getitem__), means)
        self.reasons.update(ops.reasons)
        shape = (len(self.x.lo), len(self.y.lo), width)
        gradient = result.gradient.broadcast_to((*shape, 2 * d + 1))
        return Slope(result.value.broadcast_to(shape), gradient, np.broadcast_to(result.length, shape))

    def _across(self, known: Slope, width: int) -> Slope:
        """Of what is the same for every y: (P, 1, width), with y's variables."""
        d, shape = self.d, (len(self.x.lo), width)
        gradient = known.gradient.broadcast_to((*shape, d + 1))
        still = Interval.point(np.zeros((*shape, d)))
        wide = _joined([gradient, still])
        length = np.broadcast_to(known.length, shape)
        return Slope(known.value.broadcast_to(shape)[:, None], wide[:, None], length[:, None])

    def _mixed(self, body: Slope) -> Slope:
        """Any mixture over y; what was this y's is the tokens' from now on."""
        gradient = _joined([_hull(body.gradient[..., : self.d]), _within(self._by_tokens(body.gradient)[..., None])])
        return self.ops.made(_hull(body.value), gradient, body.length.max(axis=1))

    def _by_tokens(self, gradient: Interval) -> FloatArray:
        """The most that tokens move a body: y, and all of them through inner reductions: (P, width)."""
        moved = gradient[..., self.d :].abs_upper()
        most: FloatArray = ((moved[..., 0] + times(moved[..., 1:], self.omega).sum(-1)) * INFLATE).max(axis=1)
        return most

    def _scaled(self, kind: str, mean: Slope) -> Slope:
        if not kind.startswith("sum"):
            return mean
        less = int(kind.endswith("_others"))
        least, most = float(self.tokens.minimum - less), float(self.tokens.maximum - less)
        n = Interval(np.full((), least), np.full((), most))
        return self.ops.made(mean.value * n, mean.gradient * n, times(mean.length, np.asarray(most)) * INFLATE)

    def _weighted_mean(self, node: Node, quotient: Slope) -> Slope:
        """`quotient`, by the quotient rule, as far as the formula above improves on it."""
        found = weighted_mean(node)
        if found is None:
            return quotient
        _, w_node, a_node = found
        w, a, log = (self._body(part, node.width) for part in (w_node, a_node, log_of(w_node)))
        one_sign = (w.value.lo > 0).all() or (w.value.hi < 0).all()
        if not bool(one_sign and np.isfinite(w.value.abs_upper()).all()):
            return quotient
        hull = _hull(a.value)
        f = quotient.value.broadcast_to(hull.shape).intersect(hull)
        gap = a.value - f[:, None]
        length = (a.length + times(gap.abs_upper(), log.length)) * INFLATE
        term_by_term = self._mixed(Slope(a.value, a.gradient + gap[..., None] * log.gradient, length))
        gradient, least = quotient.gradient.broadcast_to(term_by_term.gradient.shape), quotient.length
        for other in (term_by_term, self._by_ranges(a, log)):
            gradient = select(gradient.defined, gradient.intersect(other.gradient), other.gradient)
            least = np.fmin(least, other.length)
        return self.ops.made(f, gradient, least)

    def _by_ranges(self, a: Slope, log: Slope) -> Slope:
        """Σ p (∂a + (a − f) ∂log w) by the ranges of a and of ∂log w alone."""
        d, hull, of_log = self.d, _hull(a.value), _hull(log.gradient[..., : self.d])
        spread = up(hull.hi - hull.lo)
        covariance = times(spread[..., None] / 4, up(of_log.hi - of_log.lo)) * INFLATE
        by_tokens = (self._by_tokens(a.gradient) + times(spread / 2, self._by_tokens(log.gradient))) * INFLATE
        gradient = _joined([_hull(a.gradient[..., :d]) + _within(covariance), _within(by_tokens[..., None])])
        length = (a.length.max(axis=1) + times(spread / 2, log.length.max(axis=1))) * INFLATE
        return self.ops.made(hull, gradient, length)


def _within(radius: FloatArray) -> Interval:
    return Interval.sealed(-radius, radius, np.isfinite(radius))


def _hull(values: Interval) -> Interval:
    """Over the cells of y, the second axis."""
    return Interval.sealed(values.lo.min(axis=1), values.hi.max(axis=1), values.defined.all(axis=1))


def _joined(parts: Sequence[Interval]) -> Interval:
    return Interval.sealed(*(np.concatenate([getattr(p, end) for p in parts], -1) for end in ("lo", "hi", "defined")))
