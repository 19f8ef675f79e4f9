"""A vector expression by coordinates: component(e, c) is a width-1 tree over x[0], …, y[d−1]; dot, norm2, total unfold.

Reductions stay whole (a coordinate of a reduction is a slice of it): they are values of the own token.
"""

from __future__ import annotations

from functools import reduce

from sumformer.targets import (
    Binary,
    Cat,
    Const,
    Dot,
    Extremum,
    Neg,
    Node,
    Norm,
    Norm2,
    Power,
    Reduce,
    Slice,
    Token,
    Total,
    Unary,
)
from sumformer.targets.arithmetic import combine, negate, raise_to


def component(node: Node, c: int) -> Node:
    """The c-th coordinate of `node` (width 1 broadcasts)."""
    if node.width == 1:
        c = 0
    match node:
        case Const():
            return node
        case Token() | Reduce():
            return node if node.width == 1 and isinstance(node, Reduce) else Slice(node, c, c + 1)
        case Slice(arg, start, _):
            return component(arg, start + c)
        case Cat(args):
            for arg in args:
                if c < arg.width:
                    return component(arg, c)
                c -= arg.width
        case Neg(arg):
            return negate(component(arg, c))
        case Binary(op, left, right):
            return combine(op, component(left, c), component(right, c))
        case Power(arg, exponent):
            return raise_to(component(arg, c), exponent)
        case Unary(fn, arg):
            return Unary(fn, component(arg, c))
        case Extremum(op_, left, right):
            return Extremum(op_, component(left, c), component(right, c))
        case Dot(left, right):
            return _sum([component(left, i) * component(right, i) for i in range(left.width)])
        case Norm2(arg):
            return _sum([component(arg, i) ** 2 for i in range(arg.width)])
        case Norm(arg):
            return Norm(Cat(tuple(component(arg, i) for i in range(arg.width))))
        case Total(arg):
            return _sum([component(arg, i) for i in range(arg.width)])
    raise AssertionError(f"component: unknown node {node!r}")


def _sum(parts: list[Node]) -> Node:
    return reduce(lambda a, b: a + b, parts)


def coordinates(node: Node) -> frozenset[int]:
    """Which coordinates of x or y a component expression mentions outside reductions."""
    if isinstance(node, Reduce):
        return frozenset()
    if isinstance(node, Slice) and isinstance(node.arg, Token):
        return frozenset(range(node.start, node.stop))
    if isinstance(node, Token):
        return frozenset(range(node.d))
    return frozenset().union(*(coordinates(child) for child in node.children))


def has_reduction(node: Node) -> bool:
    """Whether the value depends on a reduction."""
    return isinstance(node, Reduce) or any(has_reduction(child) for child in node.children)
