"""f(X)_i for the own token x and a list of others, in any arithmetic: every reduction is written out over the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias, TypeVar

from sumformer.certificates.checker.interval import Interval, IntervalOperations
from sumformer.certificates.checker.rectangle import Rectangle, RectangleOperations
from sumformer.certificates.checker.tree_values import Leaf, Operations, components
from sumformer.targets.node import Node
from sumformer.targets.tree import Reduce, Token
from sumformer.targets.walk import reductions

V = TypeVar("V")
Known: TypeAlias = Mapping[Any, list[V]]  # reductions, and sub-trees of which more is known, → coordinates


def token_values(expression: Node, ops: Operations[V], own: list[V], others: Sequence[list[V]]) -> list[V]:
    """The coordinates of f at the own token; `own` is also the first of the tokens of a reduction over all."""
    known: dict[Reduce, list[V]] = {}
    for part in reductions(expression):  # inner ones first
        tokens = [*others] if part.kind.endswith("_others") else [own, *others]
        values = [body_value(part, ops, own, y, known) for y in tokens]
        known[part] = fold(part, ops, values)
    return components(expression, ops, leaf_at(own, None, known))


def body_value(part: Reduce, ops: Operations[V], own: list[V], y: list[V], known: Known[V]) -> list[V]:
    """The body of a reduction at (x, y), of the reduction's width."""
    value = value_at(part.body, ops, own, y, known)
    return value * part.width if len(value) == 1 else value


def value_at(node: Node, ops: Operations[V], own: list[V], y: list[V], known: Known[V]) -> list[V]:
    """Any expression of a body at (x, y)."""
    return components(node, ops, leaf_at(own, y, known))


def fold(part: Reduce, ops: Operations[V], values: Sequence[list[V]]) -> list[V]:
    """⊕ over the tokens."""
    columns = [[value[k] for value in values] for k in range(part.width)]
    if part.kind in ("max", "min"):
        return [reduce(lambda a, b: ops.extremum(part.kind, a, b), column) for column in columns]
    totals = [ops.total(column) for column in columns]
    return totals if part.kind.startswith("sum") else [ops.div(t, ops.const(Fraction(len(values)))) for t in totals]


def leaf_at(own: list[V], y: list[V] | None, known: Known[V]) -> Leaf[V]:
    """x is `own`, y is `y` where there is one, and reductions have the values `known`."""

    def leaf(part: Node) -> list[V] | None:
        if isinstance(part, Token):
            return own if part.name == "x" else y
        return known.get(part)

    return leaf


class ListedIntervals(IntervalOperations):
    """Intervals in which v − v = 0: the own token's x − y in a sum over all tokens."""

    def sub(self, a: Interval, b: Interval) -> Interval:
        return self.const(Fraction(0)) if a is b else super().sub(a, b)


class ListedRectangles(RectangleOperations):
    """Rectangles in which v − v = 0."""

    def sub(self, a: Rectangle, b: Rectangle) -> Rectangle:
        return self.const(Fraction(0)) if a is b else super().sub(a, b)
