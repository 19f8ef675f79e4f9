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

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from sumformer.algebra.interval import Interval, select
from sumformer.algebra.rounding import FloatArray, down, fraction_bounds, up
from sumformer.algebra.slope import Slope, SlopeOperations, times
from sumformer.algebra.tracked import INFLATE
from sumformer.targets.domain import Box, Tokens
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.targets.node import Node
from sumformer.targets.normalised_slopes import log_of, weighted_mean
from sumformer.targets.tree import Reduce
from sumformer.targets.walk import postorder, reductions

PAIRS = 2**18  # of a cell of x and a cell of y, at most
OUTER = 64  # pieces of the ranges around all reductions, where they cost little


def splits_of(pairs: int, d: int) -> int:
    """Cells along a side for so many pairs of x and y, but two at least, where these are no more than `PAIRS`."""
    wanted = max(2, int(pairs ** (1 / (2 * d)) + 1e-9))
    return wanted if wanted ** (2 * d) <= PAIRS else 1


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


class MixtureSlopes:
    """One evaluation: x over cells (P, d), every y over the cells (Q, d), ω (d,), ranges inside bodies in `pieces`.

    The variables of a reduction are x' and one for all tokens, whose gradient is a radius, symmetric about 0, with
    weight 1; those of a body are these two and its y.
    """

    def __init__(self, box: Box, x: Interval, y: Interval, omega: FloatArray, tokens: Tokens, pieces: int = 1) -> None:
        self.x, self.inside, self.y = x, widened(x, box, omega), y
        self.omega, self.tokens, self.d, self.pieces = omega, tokens, len(omega), pieces
        self.ops = SlopeOperations(np.append(omega, 1.0)[None])
        self.reasons = self.ops.reasons
        self.known: dict[Reduce, Slope] = {}
        self.means: dict[Node, Slope] = {}
        self.env = Environment(x=self.ops.variable(self.x, None, 0.0), reduce=self.known.__getitem__)

    def of(self, expression: Node) -> FloatArray:
        """How far f moves, x itself held fast: (P, width)."""
        for part in reductions(expression):
            self.known[part] = self._scaled(part.kind, self._mixed(self._body(part.body, part.width)))
        longest = np.zeros((len(self.x.lo), expression.width))
        for known in in_pieces(self._known_in(expression), OUTER):
            longest = np.maximum(longest, evaluate(expression, self.ops, self.env, known).length)
        return longest

    def _known_in(self, expression: Node) -> dict[Node, Slope]:
        """What its value depends on, besides x and y: weighted means, and reductions that stand outside of them."""
        means = self._means_in(expression)
        parts = postorder(expression, into_reductions=False, leaves=means)
        return means | {p: self.known[p] for p in parts if p not in means and isinstance(p, Reduce)}

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
        shape = (len(self.x.lo), len(self.y.lo), width)
        inner = {part: self._across(slope, part.width) for part, slope in self._known_in(node).items()}
        found: Slope | None = None
        for known in in_pieces(inner, self.pieces):
            e = evaluate(node, ops, Environment(x=x, y=y), known)
            gradient, length = e.gradient.broadcast_to((*shape, 2 * d + 1)), np.broadcast_to(e.length, shape)
            piece = Slope(e.value.broadcast_to(shape), gradient, length)
            found = piece if found is None else _either(found, piece)
        self.reasons.update(ops.reasons)
        assert found is not None
        return found

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


def in_pieces(known: dict[Node, Slope], most: int) -> Iterator[dict[Node, Slope]]:
    """The same with values from all pieces of their ranges, of which there are at most so many together."""
    numbers = [(node, k) for node, slope in known.items() for k in range(slope.value.shape[-1])]
    each = int(most ** (1 / len(numbers)) + 1e-9) if numbers else 1
    if each < 2:
        yield known
        return
    for chosen in product(range(each), repeat=len(numbers)):
        part = dict(zip(numbers, chosen, strict=True))
        yield {
            node: replace(slope, value=_piece(slope.value, [part[node, k] for k in range(slope.value.shape[-1])], each))
            for node, slope in known.items()
        }


def _piece(value: Interval, chosen: Sequence[int], each: int) -> Interval:
    """Piece `chosen` of `each` equal ones, coordinate by coordinate; what is not bounded stays whole."""
    place = np.asarray(chosen, dtype=np.float64)
    with np.errstate(all="ignore"):
        side = value.hi - value.lo
        low, high = down(value.lo + side * (place / each)), up(value.lo + side * ((place + 1) / each))
    whole = ~np.isfinite(side)
    low = np.where(whole | (place == 0), value.lo, np.maximum(low, value.lo))
    high = np.where(whole | (place == each - 1), value.hi, np.minimum(high, value.hi))
    return Interval.sealed(low, high, value.defined)


def _either(a: Slope, b: Slope) -> Slope:
    """What holds for one of them at each place."""
    return Slope(a.value.hull(b.value), a.gradient.hull(b.gradient), np.maximum(a.length, b.length))


def _within(radius: FloatArray) -> Interval:
    return Interval.sealed(-radius, radius, np.isfinite(radius))


def _hull(values: Interval) -> Interval:
    """Over the cells of y, the second axis."""
    return Interval.sealed(values.lo.min(axis=1), values.hi.max(axis=1), values.defined.all(axis=1))


def _joined(parts: Sequence[Interval]) -> Interval:
    return Interval.sealed(*(np.concatenate([getattr(p, end) for p in parts], -1) for end in ("lo", "hi", "defined")))
