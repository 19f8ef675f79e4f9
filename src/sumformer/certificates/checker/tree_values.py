"""e ↦ its value, coordinate by coordinate, in any arithmetic: the checker's own walk over a target's tree."""

from __future__ import annotations

from collections.abc import Callable, Container
from fractions import Fraction
from typing import Protocol, TypeVar

from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.node import Node
from sumformer.targets.tree import (
    Binary,
    Cat,
    Const,
    Dot,
    Extremum,
    Neg,
    Norm,
    Norm2,
    Power,
    Reduce,
    Slice,
    Token,
    Total,
    Unary,
)
from sumformer.targets.walk import postorder

V = TypeVar("V")


class Operations(Protocol[V]):
    """An arithmetic of scalars; `total` adds in any order, `norm` is Euclidean."""

    def const(self, value: Fraction) -> V: ...
    def add(self, a: V, b: V) -> V: ...
    def sub(self, a: V, b: V) -> V: ...
    def neg(self, a: V) -> V: ...
    def mul(self, a: V, b: V) -> V: ...
    def div(self, a: V, b: V) -> V: ...
    def power(self, v: V, k: int) -> V: ...
    def total(self, values: list[V]) -> V: ...
    def norm(self, values: list[V]) -> V: ...
    def extremum(self, op: str, a: V, b: V) -> V: ...
    def function(self, fn: str, v: V) -> V: ...


Leaf = Callable[[Node], list[V] | None]


def components(node: Node, ops: Operations[V], leaf: Leaf[V], leaves: Container[Node] = ()) -> list[V]:
    """The coordinates of `node`. `leaf` gives those of tokens and reductions, and of any sub-tree it knows better.

    What stands below one of `leaves` is not looked at.
    """
    values: dict[Node, list[V]] = {}
    for part in postorder(node, into_reductions=False, leaves=leaves):
        known = leaf(part)
        values[part] = known if known is not None else applied(part, ops, [values[child] for child in part.children])
    return values[node]


def reduction_at(node: Node, c: int) -> tuple[Reduce, int] | None:
    """The reduction of which `node`'s coordinate c is a coordinate, and which one."""
    while isinstance(node, Slice):
        arg, c = node.arg, c + node.start
        node = arg
    return (node, c) if isinstance(node, Reduce) else None


def applied(node: Node, ops: Operations[V], v: list[list[V]]) -> list[V]:
    """The coordinates of `node` from those of its children."""
    match node:
        case Const(value):
            return [ops.const(value)]
        case Token(name):
            raise Unproved(f"an expression mentions {name} where it may not")
        case Reduce(kind):
            raise Unproved(f"an expression uses a {kind}(…) that is not computed before it")
        case Slice(_, start, stop):
            return v[0][start:stop]
        case Cat():
            return [value for part in v for value in part]
        case Neg():
            return [ops.neg(a) for a in v[0]]
        case Binary("+"):
            return [ops.add(a, b) for a, b in _pairs(node, v)]
        case Binary("-"):
            return [ops.sub(a, b) for a, b in _pairs(node, v)]
        case Binary("*"):
            return _products(node, ops, _pairs(node, v))
        case Binary("/"):
            return [ops.div(a, b) for a, b in _pairs(node, v)]
        case Power(_, k):
            return [ops.power(a, k) for a in v[0]]
        case Unary(fn):
            return [ops.function(fn, a) for a in v[0]]
        case Extremum(op):
            return [ops.extremum(op, a, b) for a, b in _pairs(node, v)]
        case Dot():
            return [ops.total(_products(node, ops, list(zip(v[0], v[1], strict=True))))]
        case Norm2():
            return [ops.total([ops.power(a, 2) for a in v[0]])]
        case Norm():
            return [ops.norm(v[0])]
        case Total():
            return [ops.total(v[0])]
    raise Unproved(f"unknown node {node!r}")


def _products(node: Node, ops: Operations[V], pairs: list[tuple[V, V]]) -> list[V]:
    """a·b, coordinate by coordinate; where both factors are written alike, the square of one.

    At given tokens equal sub-trees have one value: a·b = a², which is ≥ 0. Equal enclosures alone do not say so (those
    of x and y are, over one box), so it is the trees that are compared, never the values.
    """
    left, right = node.children
    return [ops.power(a, 2) for a, _ in pairs] if left == right else [ops.mul(a, b) for a, b in pairs]


def _pairs(node: Node, v: list[list[V]]) -> list[tuple[V, V]]:
    left, right = (part * node.width if len(part) == 1 else part for part in v)
    return list(zip(left, right, strict=True))
