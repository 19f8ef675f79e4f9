"""Step 3, inside: the exact range of a reduction and the error of Σ_t â_t V̂_t, on every cell of x.

A mean lies in the hull of its body over all y. The approximation costs, for each (channel, product) with its terms
taken together, sup_y |b Σ_t a_t p_t| · sup|Π K̃ − Π K|; the rest is rounding of V_t, errors of a_t and their products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sumformer.certificates.checker.features import norm_of
from sumformer.certificates.checker.interval import Floats, Interval
from sumformer.certificates.checker.network import Reduction, Term
from sumformer.certificates.checker.own_token import at_own, mean_with_own, sum_with_own
from sumformer.certificates.checker.proof import Pass
from sumformer.certificates.checker.tracked import Tracked
from sumformer.certificates.checker.tree_values import Leaf, components
from sumformer.certificates.checker.upward import times
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.domain import Tokens
from sumformer.targets.node import Node
from sumformer.targets.tree import Reduce, Token


@dataclass(frozen=True)
class TermParts:
    """Of one term on the cells of x: its own factor, sup |V_t| (approximated), and the rounding of V_t, twice."""

    own: Tracked
    size: Floats
    rounding: float
    own_rounding: float

    def moved(self, share: float, own_share: float) -> Floats:
        """sup |â_t V̂_t|, and with …_others what is taken from it."""
        rounding = share * self.rounding + own_share * self.own_rounding
        return times(self.own.value.magnitude + self.own.error, (share + own_share) * self.size + rounding)


def refuse_overflow(p: Pass, kind: str, terms: tuple[Term, ...], leaf: Leaf[Tracked]) -> None:
    """Σ_t â_t V̂_t, times n for a sum, stays below the largest number of the arithmetic, with room."""
    moved: Floats = np.zeros(())
    for part in (_parts(p, term, leaf) for term in terms):
        moved = moved + part.moved(*_shares(kind, p.setting.tokens))
    if p.arithmetic.u and bool(np.any(_too_large(p, kind, moved))):
        raise Unproved("rounding: a sum over tokens may overflow")


def _too_large(p: Pass, kind: str, moved: Floats) -> Any:
    return ~(8 * moved * (1 if kind == "mean" else p.setting.tokens.maximum) < p.arithmetic.huge)


def _shares(kind: str, tokens: Tokens) -> tuple[float, float]:
    """n/(n − 1) and 1/(n − 1) for …_others, both largest at the least n; else 1 and 0."""
    return (tokens.minimum / (tokens.minimum - 1), 1 / (tokens.minimum - 1)) if kind.endswith("_others") else (1.0, 0.0)


def reduce_all(p: Pass, reduction: Reduction, leaf: Leaf[Tracked]) -> list[Tracked]:
    """Every coordinate of the reduction; `leaf` knows x and the reductions before this one.

    The body is always evaluated, so that a target that is not defined on the whole box is never verified.
    """

    def body_leaf(part: Node) -> list[Interval] | None:
        if isinstance(part, Token):
            return p.setting.x if part.name == "x" else p.setting.y
        values = leaf(part) if isinstance(part, Reduce) else None
        return None if values is None else [v.value for v in values]

    kind, tokens = reduction.node.kind, p.setting.tokens
    ranges = [p.setting.cells.over_y(body) for body in components(reduction.node.body, p.ops.exact, body_leaf)]
    if p.setting.own_token and kind in ("mean", "sum"):
        own = at_own(reduction.node.body, p.setting, body_leaf)
        with_own = mean_with_own if kind == "mean" else sum_with_own
        ranges = [with_own(r, p.setting.cells.full(o), tokens) for r, o in zip(ranges, own, strict=True)]
    else:
        ranges = [_over_tokens(p, kind, r) for r in ranges]
    return [
        _finish(p, kind, value, terms, [_parts(p, term, leaf) for term in terms])
        for value, terms in zip(ranges, reduction.components, strict=True)
    ]


def _over_tokens(p: Pass, kind: str, mean: Interval) -> Interval:
    """From where a mean lies to where the reduction does; numbers of tokens are exact, up to 2^30."""
    if kind.startswith("mean"):
        return mean
    left_out = 1 if kind.endswith("_others") else 0
    low, high = (float(n - left_out) for n in (p.setting.tokens.minimum, p.setting.tokens.maximum))
    return p.ops.exact.mul(Interval(np.asarray(low), np.asarray(high)), mean)


def _parts(p: Pass, term: Term, leaf: Leaf[Tracked]) -> TermParts:
    cells, channel = p.setting.cells, p.channels[term.channel]
    own = components(term.own, p.ops, leaf)[0]
    own = Tracked(cells.full(own.value), cells.spread(own.error))
    polynomial = cells.polynomial(term.polynomial)
    kernel = p.kernel_size(term.product) + p.kernel_error(term.product)
    size = cells.max_over_y(times(channel.value.magnitude, polynomial.magnitude, kernel))
    b, e = float(channel.value.magnitude.max()), float(channel.error.max())
    if p.rounding.overflows(term.product, norm_of(term.polynomial), b + e):
        p.notes.append("rounding: the sums over tokens may overflow")
        return TermParts(own, size, np.inf, np.inf)
    return TermParts(own, size, p.rounding.series(term, b, e), p.rounding.series(term, b, e, own=True))


def approximation(p: Pass, terms: tuple[Term, ...], parts: list[TermParts]) -> Floats:
    """Σ over (channel, product) of sup_y |b Σ_t a_t p_t| · error of the product."""
    exact, cells = p.ops.exact, p.setting.cells
    groups: dict[tuple[int, int], Interval] = {}
    for term, part in zip(terms, parts, strict=True):
        key = (term.channel, term.product)
        value = exact.mul(part.own.value, cells.polynomial(term.polynomial))
        groups[key] = exact.add(groups[key], value) if key in groups else value
    out: Floats = cells.spread(np.zeros(()))
    for (channel, product), value in groups.items():
        error = times(p.channels[channel].value.magnitude, value.magnitude, p.kernel_error(product))
        out = out + cells.max_over_y(error)
    return out


def _finish(p: Pass, kind: str, value: Interval, terms: tuple[Term, ...], parts: list[TermParts]) -> Tracked:
    """mean | n·mean | n·mean − own | (n·mean − own)/(n − 1), all per n or n − 1 first, then times it.

    For …_others, Σ over the others of the approximation is (n − 1) times it, while rounding is that of n·V and of the
    own term: per n − 1 they cost n/(n − 1) and 1/(n − 1), both largest at the least n.
    """
    a, tokens = p.arithmetic, p.setting.tokens
    counting = a.count_roundings(tokens.maximum)
    others = kind.endswith("_others")
    share, own_share = _shares(kind, tokens)
    error = approximation(p, terms, parts)
    moved: Floats = np.zeros(())  # the size of what is multiplied and added
    for part in parts:
        rounding = share * part.rounding + own_share * part.own_rounding
        error = error + times(part.own.value.magnitude, rounding) + times(part.own.error, part.size + rounding)
        moved = moved + part.moved(share, own_share)
    error = error + (a.gamma(len(parts) + 2 + counting) * moved + (2 * len(parts) + 4) * a.tiny if a.u else 0.0)
    error = np.where(np.isnan(error) | _too_large(p, kind, moved), np.inf, error)
    if kind == "mean":
        return Tracked(value, error)
    if kind == "mean_others":
        return p.ops.rounded(value, error, 2 + 4 * counting)  # n − 1 is then rounded too, and off by nu ≤ 2(n − 1)u
    return p.ops.rounded(value, (tokens.maximum - (1 if others else 0)) * error, 2 + counting)
