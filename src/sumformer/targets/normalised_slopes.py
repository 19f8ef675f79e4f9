"""Slopes of f = Σ_t c_t e_t a_t / Σ_t c_t e_t, e > 0, a weighted mean: with λ_t = e_t / Σ_s c_s e_s, Σ_t c_t λ_t = 1,

  ∂f = Σ_t c_t λ_t (∂a_t + (a_t − f) ∂log e_t),     f ∈ hull of the a_t.

So Σ|∂f| is at most the largest of the terms, however many tokens there are, and the logarithm of an exponential costs
nothing; the quotient rule taken by itself knows neither.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sumformer.algebra.interval import Interval, select
from sumformer.algebra.rounding import FloatArray
from sumformer.algebra.slope import Slope, times
from sumformer.algebra.tracked import INFLATE
from sumformer.targets.arithmetic import combine
from sumformer.targets.node import Node
from sumformer.targets.tree import Binary, Const, Neg, Power, Reduce, Unary
from sumformer.targets.walk import postorder

if TYPE_CHECKING:
    from sumformer.targets.token_slopes import TokenSlopes

KINDS = ("sum", "mean", "sum_others", "mean_others")


def weighted_mean(node: Node) -> tuple[Reduce, Node, Node] | None:
    """(the denominator, e, a) of sum(e·a)/sum(e), for sums or means over the same tokens."""
    match node:
        case Binary("/", Reduce() as top, Reduce() as bottom) if top.kind == bottom.kind and top.kind in KINDS:
            a = _cofactor(top.body, bottom.body)
            return (bottom, bottom.body, a) if a is not None and bottom.width in (1, a.width) else None
    return None


def _cofactor(product: Node, e: Node) -> Node | None:
    """a with product = e·a as written."""
    if product == e:
        return Const(Fraction(1))
    if not isinstance(product, Binary) or product.op not in "*/":
        return None
    left = _cofactor(product.left, e)
    if left is not None:
        return combine(product.op, left, product.right)
    right = _cofactor(product.right, e) if product.op == "*" else None
    return None if right is None else combine("*", product.left, right)


def log_of(e: Node) -> Node:
    """log |e| up to a constant, which has no slope; e ≠ 0."""
    match e:
        case Unary("exp", arg):
            return arg
        case Binary("*", left, right):
            return combine("+", log_of(left), log_of(right))
        case Binary("/", left, right):
            return combine("-", log_of(left), log_of(right))
        case Power(arg, k):
            return combine("*", Const(Fraction(k)), log_of(arg))
        case Neg(arg):
            return log_of(arg)
        case Const():
            return Const(Fraction(0))
    return Unary("log", Unary("abs", e))


def normalised_slope(tokens: TokenSlopes, node: Node, quotient: Slope) -> Slope:
    """`quotient`, the slope of a weighted mean by the quotient rule, as far as the formula above improves on it."""
    found = weighted_mean(node)
    if found is None:
        return quotient
    bottom, e_node, a_node = found
    first = 1 if bottom.kind.endswith("_others") else 0
    parts = (*postorder(e_node, into_reductions=False), *postorder(a_node, into_reductions=False))
    nested = list(dict.fromkeys(p for p in parts if isinstance(p, Reduce)))
    e, a, log = (tokens.body(part, nested, first) for part in (e_node, a_node, log_of(e_node)))
    if not bool((e.value.lo > 0).all() and np.isfinite(e.value.hi).all()):
        return quotient
    counts = tokens.counts[first:]
    share = _shares(e.value, np.array([float(c.hi) for c in counts]))
    hull = _hull(a.value)
    f = quotient.value.broadcast_to(hull.shape).intersect(hull)
    gap = a.value - f[:, None]
    gradient = a.gradient + gap[..., None] * log.gradient
    direct = times(gradient.abs_upper(), tokens.body_weights(nested, first)[:, :, None]).sum(-1)
    with np.errstate(invalid="ignore"):
        length = np.fmin(a.length + times(gap.abs_upper(), log.length), direct) * INFLATE
    often = np.array([float(c.hi) for c in counts])[:, None]
    by_share = times(times(often, share.hi), length).sum(1)
    whole = tokens.assemble(Slope(a.value, gradient, length), nested, first, share[..., None], _hull)
    known = quotient.gradient.broadcast_to(whole.shape)
    both = select(known.defined, known.intersect(whole), whole)
    return tokens.ops.made(f, both, np.fmin(quotient.length, np.minimum(length.max(axis=1), by_share) * INFLATE))


def _shares(e: Interval, often: FloatArray) -> Interval:
    """λ_t = e_t/(e_t + the others), increasing in e_t and decreasing in the others: (boxes, T, 1)."""
    lo, hi, c = e.lo, e.hi, often[:, None]
    rest_lo = np.maximum((c * lo).sum(1, keepdims=True) / INFLATE - lo, 0.0) / INFLATE
    rest_hi = np.maximum((c * hi).sum(1, keepdims=True) * INFLATE - hi, 0.0) * INFLATE
    return Interval(lo / (lo + rest_hi) / INFLATE, np.minimum(hi / (hi + rest_lo) * INFLATE, 1.0))


def _hull(values: Interval) -> Interval:
    """Over the tokens, the second axis: where every weighted mean of them lies."""
    return Interval.sealed(values.lo.min(axis=1), values.hi.max(axis=1), values.defined.all(axis=1))
