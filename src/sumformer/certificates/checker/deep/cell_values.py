"""f on boxes of n tokens, in the checker's intervals: f(X)_i for every i, each token in a cell of its own."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations
from sumformer.certificates.checker.tree_values import components
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.domain import Box
from sumformer.targets.node import Node
from sumformer.targets.target import Target
from sumformer.targets.tree import Reduce, Token
from sumformer.targets.walk import reductions

Ints = NDArray[np.int64]
Tokens = list[list[Interval]]


class _Own(IntervalOperations):
    """One object is one number: a − a = 0, a·a = a²."""

    def sub(self, a: Interval, b: Interval) -> Interval:
        return Interval(np.zeros(np.shape(a.lo)), np.zeros(np.shape(a.lo))) if a is b else super().sub(a, b)

    def mul(self, a: Interval, b: Interval) -> Interval:
        return self.power(a, 2) if a is b else super().mul(a, b)


def on_cells(f: Target, rows: Ints, per_axis: int) -> tuple[Floats, Floats]:
    """Enclosures (m, n, width) of f on the cells `rows` (m, n), numbered with the first coordinate fastest."""
    n, d = rows.shape[1], f.input_box.d
    edges = [_edges(f.input_box, c, per_axis) for c in range(d)]
    digits = [(rows // per_axis**c) % per_axis for c in range(d)]
    tokens = [[Interval(e[0][g[:, j]], e[1][g[:, j]]) for e, g in zip(edges, digits, strict=True)] for j in range(n)]
    if f.positioned:  # the last coordinate of a token is its place
        for j, token in enumerate(tokens):
            token.append(Interval(np.asarray(j + 1.0), np.asarray(j + 1.0)))
    values = [_value(f, tokens, i) for i in range(n)]
    shape = (len(rows),)
    low = np.stack([np.stack([np.broadcast_to(v.lo, shape) for v in row], -1) for row in values], 1)
    high = np.stack([np.stack([np.broadcast_to(v.hi, shape) for v in row], -1) for row in values], 1)
    if not bool((np.isfinite(low) & np.isfinite(high)).all()):
        raise Unproved("the target cannot be enclosed on a cell")
    return low, high


def _edges(box: Box, c: int, per_axis: int) -> tuple[Floats, Floats]:
    low, high = box.lower[c], box.upper[c]
    ends = [low + (high - low) * Fraction(k, per_axis) for k in range(per_axis + 1)]
    floats = [float(e) for e in ends]
    down = [v if Fraction(v) <= e else np.nextafter(v, -np.inf) for v, e in zip(floats, ends, strict=True)]
    up = [v if Fraction(v) >= e else np.nextafter(v, np.inf) for v, e in zip(floats, ends, strict=True)]
    return np.array(down[:-1]), np.array(up[1:])


def _value(f: Target, tokens: Tokens, i: int) -> list[Interval]:
    ops, reduced = _Own(), dict[Node, list[Interval]]()
    own = tokens[i]

    def leaf(y: list[Interval] | None, node: Node) -> list[Interval] | None:
        match node:
            case Token("x"):
                return own
            case Token("y"):
                return y
            case Reduce():
                return reduced[node]
        return None

    for part in reductions(f.expression):  # inner ones first
        others = part.kind.endswith("_others")
        bodies = [
            components(part.body, ops, lambda node, y=y: leaf(y, node))  # type: ignore[misc]
            for j, y in enumerate(tokens)
            if j != i or not others
        ]
        reduced[part] = [_fold(part.kind, ops, [body[c] for body in bodies]) for c in range(part.width)]
    return components(f.expression, ops, lambda node: leaf(None, node))


def _fold(kind: str, ops: IntervalOperations, values: list[Interval]) -> Interval:
    if kind in ("max", "min"):
        return reduce(lambda a, b: ops.extremum(kind, a, b), values)
    total = ops.total(values)
    return total if kind.startswith("sum") else ops.div(total, ops.const(Fraction(len(values))))
