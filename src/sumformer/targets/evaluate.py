"""e ↦ its value in any arithmetic: one walk over the tree, the arithmetic given as an `Operations` object.

Values carry a width; `add`, `sub`, `mul`, `div` and `extremum` broadcast width 1, all others get widths that fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, Protocol, TypeVar

from sumformer.errors import TargetError
from sumformer.targets.node import Node
from sumformer.targets.tree import (
    Binary,
    Cat,
    Const,
    Dot,
    Extremum,
    ExtremumOp,
    Function,
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
    """An arithmetic for the values of a tree: floats, intervals, complex rectangles, polynomials."""

    def const(self, value: Fraction) -> V: ...
    def add(self, a: V, b: V) -> V: ...
    def sub(self, a: V, b: V) -> V: ...
    def mul(self, a: V, b: V) -> V: ...
    def div(self, a: V, b: V) -> V: ...
    def neg(self, v: V) -> V: ...
    def power(self, v: V, k: int) -> V: ...
    def unary(self, fn: Function, v: V) -> V: ...
    def extremum(self, op: ExtremumOp, a: V, b: V) -> V: ...
    def cat(self, values: Sequence[V]) -> V: ...
    def slice(self, v: V, start: int, stop: int) -> V: ...
    def dot(self, a: V, b: V) -> V: ...
    def norm2(self, v: V) -> V: ...
    def norm(self, v: V) -> V: ...
    def total(self, v: V) -> V: ...


@dataclass(frozen=True, slots=True)
class Environment(Generic[V]):
    """What the leaves stand for: the own token, the other token (inside a body), and the value of a reduction."""

    x: V | None = None
    y: V | None = None
    reduce: Callable[[Reduce], V] | None = None


def evaluate(node: Node, ops: Operations[V], env: Environment[V], known: Mapping[Node, V] | None = None) -> V:
    """The value of `node`; equal sub-trees are evaluated once, and bodies of reductions are left to `env.reduce`.

    Sub-trees in `known` have the value given there and are not entered.
    """
    values: dict[Node, V] = dict(known or {})
    for part in postorder(node, into_reductions=False, leaves=dict(values)):
        if part in values:
            continue
        values[part] = (
            _leaf(part, ops, env) if _is_leaf(part) else _apply(part, ops, [values[c] for c in part.children])
        )
    return values[node]


def _is_leaf(node: Node) -> bool:
    return isinstance(node, Const | Token | Reduce)


def _leaf(node: Node, ops: Operations[V], env: Environment[V]) -> V:
    value: V | None = None
    match node:
        case Const(c):
            return ops.const(c)
        case Token(name):
            value = env.x if name == "x" else env.y
        case Reduce():
            value = env.reduce(node) if env.reduce is not None else None
    if value is None:
        raise TargetError(f"the environment has no value for {node!r}")
    return value


def _apply(node: Node, ops: Operations[V], v: list[V]) -> V:
    match node:
        case Binary("+"):
            return ops.add(*v)
        case Binary("-"):
            return ops.sub(*v)
        case Binary("*"):
            return ops.mul(*v)
        case Binary("/"):
            return ops.div(*v)
        case Neg():
            return ops.neg(*v)
        case Power(_, k):
            return ops.power(v[0], k)
        case Unary(fn):
            return ops.unary(fn, *v)
        case Extremum(op):
            return ops.extremum(op, *v)
        case Cat():
            return ops.cat(v)
        case Slice(_, start, stop):
            return ops.slice(v[0], start, stop)
        case Dot():
            return ops.dot(*v)
        case Norm2():
            return ops.norm2(*v)
        case Norm():
            return ops.norm(*v)
        case Total():
            return ops.total(*v)
    raise TargetError(f"unknown node {node!r}")
