"""Slopes of q = Σ_t c_t w_t a_t / Σ_t c_t w_t, w > 0: with p_t = w_t / Σ_s c_s w_s, so that Σ_t c_t p_t = 1,

  dq = Σ_t c_t p_t g_t,   g_t = da_t + (a_t − q) d log w_t,   q between the least a_t and the largest.

For d(Σ w a) − q d(Σ w) = Σ w da + Σ (a − q) dw, divided by Σ w, and dw = w d log w. A token moves its own term alone,
by p_t ∂g_t/∂y; what moves all terms at once moves q by a mixture of the g_t, which lies in their hull.
Where the gradient exists, almost everywhere, it lies in this enclosure and in the quotient rule's: in both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.checker.grid.slope import Slope, SlopeOperations, scaled, times
from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, from_fraction, meet
from sumformer.certificates.checker.token_values import Known, value_at
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.node import Node
from sumformer.targets.tree import Binary, Const, Neg, Power, Reduce, Unary

KINDS = ("sum", "mean", "sum_others", "mean_others")
MAX_POWER = 64
_REAL = IntervalOperations()
_ZERO, _ONE = (from_fraction(Fraction(k)) for k in (0, 1))
Column = tuple[Slope, Slope, Slope]  # w, log |w|, a in one coordinate
ToSlots = Callable[[Interval, list[Interval], int], Interval]


@dataclass(frozen=True)
class WeightedMean:
    """top/bottom = Σ w·a/Σ w over the same tokens; w = Π u^e over `weight`, a = constant · Π u^e over `rest`."""

    top: Reduce
    bottom: Reduce
    width: int
    constant: Fraction
    weight: dict[Node, int]
    rest: dict[Node, int]

    @property
    def others(self) -> bool:
        return self.top.kind.endswith("_others")

    def columns(self, ops: SlopeOperations, own: list[Slope], y: list[Slope], known: Known[Slope]) -> list[Column]:
        """At one token, coordinate by coordinate."""

        def coordinates(node: Node) -> list[Slope]:
            value = value_at(node, ops, own, y, known)
            return value * self.width if len(value) == 1 else value

        logs: dict[Node, list[Slope]] = {
            u: coordinates(u.arg) for u in self.weight if isinstance(u, Unary) and u.fn == "exp"
        }
        atoms = {u: [ops.function("exp", v) for v in log] for u, log in logs.items()}
        atoms |= {u: coordinates(u) for u in self.weight | self.rest if u not in atoms}
        for u in self.weight:
            if u not in logs:
                logs[u] = [ops.function("log", ops.function("abs", v)) for v in atoms[u]]
        return [
            (
                _product(ops, [ops.power(atoms[u][k], e) for u, e in self.weight.items()]),
                ops.total([ops.mul(ops.const(Fraction(e)), logs[u][k]) for u, e in self.weight.items()]),
                self._cofactor(ops, {u: atoms[u][k] for u in self.rest}),
            )
            for k in range(self.width)
        ]

    def _cofactor(self, ops: SlopeOperations, atoms: dict[Node, Slope]) -> Slope:
        """a as a quotient, whose slope is known better than that of a product with inverses."""
        powers = [(ops.power(atoms[u], abs(e)), e) for u, e in self.rest.items()]
        above = _product(ops, [ops.const(self.constant), *(u for u, e in powers if e > 0)])
        below = [u for u, e in powers if e < 0]
        return ops.div(above, _product(ops, below)) if below else above


def weighted_mean(node: Node) -> WeightedMean | None:
    """The pattern, where both bodies have a factor with y in common; others of the denominator's divide a."""
    match node:
        case Binary("/", Reduce(kind) as top, Reduce(other) as bottom) if kind == other and kind in KINDS:
            above, below = factors(top.body), factors(bottom.body)
            if above is None or below is None or not any("y" in u.free for u in above[1].keys() & below[1].keys()):
                return None
            weight, rest = Counter(below[1]), Counter(above[1])
            rest.subtract(weight)
            if not any(weight.values()) or any(abs(e) > MAX_POWER for e in (*weight.values(), *rest.values())):
                return None
            shared, left = ({u: e for u, e in powers.items() if e} for powers in (weight, rest))
            return WeightedMean(top, bottom, node.width, above[0] / below[0], shared, left)
    return None


def factors(node: Node) -> tuple[Fraction, dict[Node, int]] | None:
    """c · Π u^e as written, c ≠ 0, e = 0 where a factor cancels; None where it cannot be or is longer than may be."""
    constant, powers = Fraction(1), Counter[Node]()
    stack = [(node, 1)]
    while stack:
        part, e = stack.pop()
        if abs(e) > MAX_POWER:
            return None
        match part:
            case Const(value):
                if not value:
                    return None
                constant *= value**e
            case Neg(arg):
                constant *= Fraction(-1) ** e
                stack.append((arg, e))
            case Binary("/", Reduce(), Reduce()):  # a weighted mean, maybe, of which more is known
                powers[part] += e
            case Binary("*" | "/" as op, left, right):
                stack += [(left, e), (right, e if op == "*" else -e)]
            case Power(arg, k):
                stack.append((arg, k * e))
            case _:
                powers[part] += e
    return constant, dict(powers)


def _product(ops: SlopeOperations, values: list[Slope]) -> Slope:
    result = values[0]
    for value in values[1:]:
        result = ops.mul(result, value)
    return result


def sharpened(
    mean: WeightedMean,
    plain: list[Slope],
    ops: SlopeOperations,
    own: list[Slope],
    slots: list[tuple[int, list[Slope]]],
    known: dict[Reduce, list[Slope]],
    to_slots: ToSlots,
) -> list[Slope]:
    """`plain`, by the quotient rule, as far as the formula above improves on it; `slots` are counts with tokens."""
    tokens = slots if mean.others else [(1, own), *slots]
    trial = SlopeOperations(len(ops.bad), ops.weights)  # marks what is lost for this rule only
    try:
        rows = [mean.columns(trial, own, y, known) for _, y in tokens]
    except Unproved:
        return plain
    if not rows:
        return plain
    counts = [count for count, _ in tokens]
    return [
        _sharper(quotient, trial, [row[k] for row in rows], counts, len(slots), to_slots)
        for k, quotient in enumerate(plain)
    ]


def _sharper(
    plain: Slope, ops: SlopeOperations, terms: list[Column], counts: list[int], slots: int, to_slots: ToSlots
) -> Slope:
    cells = len(ops.bad)
    sure = ~ops.bad
    for w, _, _ in terms:
        sure = sure & (w.value.lo > 0) & (w.value.hi < np.inf)
    weights = [Interval(np.where(sure, w.value.lo, 1.0), np.where(sure, w.value.hi, 1.0)) for w, _, _ in terms]
    shares = [_share(weights, counts, t) for t in range(len(terms))]
    q = meet(_hull([a.value for _, _, a in terms], (cells,)), plain.value)
    moved = [ops.add(a, ops.mul(ops.fixed(_REAL.sub(a.value, q)), log)) for _, log, a in terms]
    parts = [scaled(p, g.gradient) for p, g in zip(shares, moved, strict=True)]
    mixed = _REAL.total([_often(count, part) for count, part in zip(counts, parts, strict=True)])
    together = meet(mixed, _hull([g.gradient for g in moved], (cells, len(ops.weights))))
    gradient = meet(to_slots(together, parts[len(parts) - slots :], cells), plain.gradient)
    lengths = [np.broadcast_to(g.length, (cells,)) for g in moved]
    by_share: Floats = sum((c * times(p.hi, r) for c, p, r in zip(counts, shares, lengths, strict=True)), np.zeros(()))
    length = np.minimum(plain.length, np.fmin(np.max(lengths, axis=0), by_share))
    return ops.made(
        _where(sure, q, plain.value),
        _where(sure[:, None], gradient, plain.gradient),
        np.where(sure, length, plain.length),
    )


def _share(weights: list[Interval], counts: list[int], t: int) -> Interval:
    """p_t = 1/(1 + Σ_{other tokens} w_s / w_t): each number once, so the interval is the range."""
    others = [c - (s == t) for s, c in enumerate(counts)]
    rest = _REAL.total([_ZERO, *(_often(c, w) for c, w in zip(others, weights, strict=True) if c)])
    share = _REAL.div(_ONE, _REAL.add(_ONE, _REAL.div(rest, weights[t])))
    return Interval(np.maximum(share.lo, 0.0), np.minimum(share.hi, 1.0))


def _often(count: int, v: Interval) -> Interval:
    return v if count == 1 else _REAL.mul(from_fraction(Fraction(count)), v)


def _hull(values: list[Interval], shape: tuple[int, ...]) -> Interval:
    low, high = (
        np.stack([np.broadcast_to(end, shape) for end in ends])
        for ends in zip(*((v.lo, v.hi) for v in values), strict=True)
    )
    return Interval(low.min(axis=0), high.max(axis=0))


def _where(sure: NDArray[np.bool_], a: Interval, b: Interval) -> Interval:
    return Interval(np.where(sure, a.lo, b.lo), np.where(sure, a.hi, b.hi))
