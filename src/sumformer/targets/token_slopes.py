"""f(X)_1 and its slopes over boxes of multisets: token t of T lies in its own box and stands for `counts[t]` tokens.

Σ_k ω_k |∂f/∂x_{t,k}| over the *moving* tokens t, each as often as it counts. Inside a reduction's body e(x, y, r) the
coordinates of x and y and the values r of nested reductions are variables of their own; then
  ∂(⊕_t e_t)/∂x_g = λ_g e_y(x, x_g) + M(e_x)·[g is the own token] + M(e_r) ∂r/∂x_g,   M(v) = Σ_t c_t λ_t v_t,
with λ_t = 1 for a sum, 1/n for a mean, and any mixture of those that may attain it (Σ_t c_t λ_t = 1) for max and min.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sumformer.algebra.interval import Interval, concatenate
from sumformer.algebra.rounding import BoolArray, FloatArray
from sumformer.algebra.slope import Slope, SlopeOperations, times
from sumformer.algebra.tracked import INFLATE
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.targets.node import Node
from sumformer.targets.normalised_slopes import normalised_slope, weighted_mean
from sumformer.targets.tree import Reduce
from sumformer.targets.walk import postorder, reductions

Mix = Callable[[Interval], Interval]  # (boxes, T, width, …) → (boxes, width, …)


class TokenSlopes:
    """One evaluation over a batch: `tokens` (boxes, T, d), the own token first; `weights` ω (d,)."""

    def __init__(
        self, tokens: Interval, counts: Sequence[Interval], moving: Sequence[bool], weights: FloatArray
    ) -> None:
        self.tokens, self.counts, self.moving, self.omega = tokens, list(counts), list(moving), weights
        self.boxes, self.T, self.d = tokens.shape
        often = [float(c.hi) for c, moves in zip(counts, moving, strict=True) if moves]
        self.ops = SlopeOperations((np.repeat(often, self.d) * np.tile(weights, len(often)) * INFLATE)[None])
        self.reasons = self.ops.reasons
        self.values: dict[Reduce, Slope] = {}

    def of(self, expression: Node) -> Slope:
        """The slopes of f at the own token."""
        for part in reductions(expression):
            self.values[part] = self._reduce(part)
        mine = range(self.d) if self.moving[0] else None
        x = self.ops.variable(self.tokens[:, 0], mine, self.omega * float(self.moving[0]))
        env = Environment(x=x, reduce=self.values.__getitem__)
        known: dict[Node, Slope] = {}
        for node in postorder(expression, into_reductions=False):
            if weighted_mean(node) is not None:
                known[node] = normalised_slope(self, node, evaluate(node, self.ops, env))
        return evaluate(expression, self.ops, env, known)

    def _reduce(self, part: Reduce) -> Slope:
        first = 1 if part.kind.endswith("_others") else 0
        nested = [p for p in postorder(part.body, into_reductions=False) if isinstance(p, Reduce)]
        body = self.body(part.body, nested, first)
        if part.kind in ("max", "min"):
            return self._extreme(part.kind, body, nested, first)
        counts = self.counts[first:]
        share = Interval.point(1.0) if part.kind.startswith("sum") else 1 / sum(counts[1:], counts[0])
        value = _sum_tokens(body.value, counts) * share
        if part.kind.startswith("mean"):
            value = value.intersect(_hull_tokens(body.value, np.ones(body.value.shape, dtype=np.bool_)))
        gradient = self.assemble(body, nested, first, share, lambda v: _sum_tokens(v, counts) * share)
        often = np.array([float(c.hi) for c in counts])[:, None]
        return self.ops.made(value, gradient, times(times(often, body.length).sum(1), share.hi) * INFLATE)

    def _extreme(self, kind: str, body: Slope, nested: list[Reduce], first: int) -> Slope:
        """Any mixture of the tokens whose range reaches the best lower end; one alone is the extremum itself."""
        v = body.value if kind == "max" else -body.value
        best = v.lo.max(axis=1, keepdims=True)
        active: BoolArray = v.hi >= best
        single = np.array([float(c.hi) == 1.0 for c in self.counts[first:]])[:, None]
        alone = active & (active.sum(axis=1, keepdims=True) == 1) & single
        part = Interval(np.where(alone, 1.0, 0.0), np.where(active, 1.0, 0.0))[..., None]
        gradient = self.assemble(body, nested, first, part, lambda u: _hull_tokens(u, active))
        top = Interval.sealed(best[:, 0], v.hi.max(axis=1), v.defined.all(axis=1))
        length = np.where(active, body.length, 0.0).max(axis=1)
        return self.ops.made(top if kind == "max" else -top, gradient, length)

    def body(self, node: Node, nested: list[Reduce], first: int) -> Slope:
        """e(x, x_t, r) for the tokens from `first` on, (boxes, T, width); its variables are x, then y, then the r."""
        batch = (self.boxes, self.T - first)
        own, other, *inner = self._lengths(nested, first)
        ops = SlopeOperations(self.body_weights(nested, first))
        x = ops.variable(self.tokens[:, :1], range(self.d), own)
        y = ops.variable(self.tokens[:, first:], range(self.d, 2 * self.d), other)
        seeds = {}
        for r, start, length in zip(nested, self._starts(nested), inner, strict=True):
            value = self.values[r].value.broadcast_to((self.boxes, r.width))[:, None]
            seeds[r] = ops.variable(value, range(start, start + r.width), length)
        result = evaluate(node, ops, Environment(x=x, y=y, reduce=seeds.__getitem__))
        self.reasons.update(ops.reasons)
        shape = (*batch, node.width)
        gradient = result.gradient.broadcast_to((*shape, ops.weights.shape[-1]))
        return Slope(result.value.broadcast_to(shape), gradient, np.broadcast_to(result.length, shape))

    def _lengths(self, nested: list[Reduce], first: int) -> list[FloatArray]:
        """Of x, of y for each token, and of each r."""
        moves = np.array(self.moving[first:], dtype=np.float64)[:, None]
        inner = [np.broadcast_to(self.values[r].length, (self.boxes, r.width))[:, None] for r in nested]
        return [self.omega * float(self.moving[0]), moves * self.omega, *inner]

    def body_weights(self, nested: list[Reduce], first: int) -> FloatArray:
        """ω of a body's variables, (boxes, T, variables)."""
        batch = (self.boxes, self.T - first)
        return np.concatenate(
            [np.broadcast_to(c, (*batch, c.shape[-1])) for c in self._lengths(nested, first)], axis=-1
        )

    def _starts(self, nested: list[Reduce]) -> list[int]:
        return [2 * self.d + sum(r.width for r in nested[:i]) for i in range(len(nested))]

    def assemble(self, body: Slope, nested: list[Reduce], first: int, part: Interval, mix: Mix) -> Interval:
        """(boxes, width, variables of all moving tokens), as in the formula above; `part` is λ."""
        d, through_y = self.d, body.gradient[..., self.d : 2 * self.d] * part
        blocks = []
        for t in (t for t in range(self.T) if self.moving[t]):
            own = mix(body.gradient[..., :d]) if t == 0 else None
            other = through_y[:, t - first] if t >= first else None
            blocks.append(own + other if own is not None and other is not None else own if other is None else other)
        gradient = concatenate([b for b in blocks if b is not None])
        for r, start in zip(nested, self._starts(nested), strict=True):
            sensitivity = mix(body.gradient[..., start : start + r.width])
            inner = self.values[r].gradient.broadcast_to((self.boxes, r.width, gradient.shape[-1]))
            for c in range(r.width):
                gradient = gradient + sensitivity[..., c : c + 1] * inner[:, c : c + 1]
        return gradient


def _sum_tokens(values: Interval, counts: Sequence[Interval]) -> Interval:
    """Σ_t c_t v_t over the second axis."""
    total = values[:, 0] * counts[0]
    for t in range(1, len(counts)):
        total = total + values[:, t] * counts[t]
    return total


def _hull_tokens(values: Interval, active: BoolArray) -> Interval:
    """The hull over the active tokens (second axis), of which there is always one."""
    there = active.reshape(active.shape + (1,) * (len(values.shape) - active.ndim))
    lo = np.where(there, values.lo, np.inf).min(axis=1)
    hi = np.where(there, values.hi, -np.inf).max(axis=1)
    return Interval.sealed(lo, hi, (values.defined | ~there).all(axis=1))
