"""Walks over a tree: post-order, reductions, rebuilding and substitution."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from sumformer.errors import TargetError
from sumformer.targets.arithmetic import combine, negate, raise_to
from sumformer.targets.node import Node
from sumformer.targets.tree import Binary, Cat, Dot, Extremum, Neg, Norm, Norm2, Power, Reduce, Slice, Total, Unary


def postorder(node: Node, *, into_reductions: bool = True, leaves: Container[Node] = ()) -> tuple[Node, ...]:
    """The distinct sub-trees, each after its children, `node` last; `Reduce` bodies only if asked for.

    What is in `leaves` is not entered.
    """
    done: dict[Node, None] = {}
    stack: list[tuple[Node, bool]] = [(node, False)]
    while stack:
        current, expanded = stack.pop()
        if current in done:
            continue
        ends = current in leaves or (isinstance(current, Reduce) and not into_reductions)
        if expanded or ends or not current.children:
            done[current] = None
            continue
        stack.append((current, True))
        stack.extend((child, False) for child in reversed(current.children))
    return tuple(done)


def reductions(node: Node) -> tuple[Reduce, ...]:
    """The distinct reductions, inner ones first."""
    return tuple(part for part in postorder(node) if isinstance(part, Reduce))


def has_function(node: Node, *, into_reductions: bool = True) -> bool:
    """Whether exp, log, sin, cos, tanh, sigmoid or a root is evaluated."""
    parts = postorder(node, into_reductions=into_reductions)
    return any(isinstance(part, Norm) or (isinstance(part, Unary) and part.fn != "abs") for part in parts)


def rebuild(node: Node, children: Sequence[Node]) -> Node:
    """The same node over other children, in normal form (constants folded)."""
    if len(children) != len(node.children):
        raise TargetError(f"{node!r} has {len(node.children)} children, got {len(children)}")
    match node, tuple(children):
        case _ if not children:
            return node
        case Slice(_, start, stop), (arg,):
            return Slice(arg, start, stop)
        case Cat(), args:
            return Cat(args)
        case Neg(), (arg,):
            return negate(arg)
        case Binary(op), (left, right):
            return combine(op, left, right)
        case Power(_, exponent), (arg,):
            return raise_to(arg, exponent)
        case Unary(fn), (arg,):
            return Unary(fn, arg)
        case Extremum(op_), (left, right):
            return Extremum(op_, left, right)
        case Dot(), (left, right):
            return Dot(left, right)
        case ((Norm2() | Norm() | Total()), (arg,)):
            return type(node)(arg)
        case Reduce(kind), (body,):
            return Reduce(kind, body)
    raise TargetError(f"unknown node {node!r}")


def transform(node: Node, change: Callable[[Node, tuple[Node, ...]], Node]) -> Node:
    """Bottom-up: every distinct sub-tree becomes `change(sub-tree, its changed children)`."""
    new: dict[Node, Node] = {}
    for part in postorder(node):
        new[part] = change(part, tuple(new[child] for child in part.children))
    return new[node]


def normalise(node: Node) -> Node:
    """The normal form: constants folded everywhere, as the parser and the operators do."""
    return transform(node, rebuild)


def substitute(node: Node, mapping: Mapping[Node, Node]) -> Node:
    """`node` with every sub-tree that is a key replaced, outermost first.

    Inside a reduction y is another variable: keys with a free y do not match there, and a replacement with a free y
    that would land there is an error.
    """
    inner = {key: value for key, value in mapping.items() if "y" not in key.free}

    def free_part(part: Node, active: Mapping[Node, Node], bound: bool) -> Node:
        new: dict[Node, Node] = {}
        stack = [(part, False)]
        while stack:
            current, expanded = stack.pop()
            if current in new:
                continue
            if current in active:
                if bound and "y" in active[current].free:
                    raise TargetError("a replacement with a free y would be captured by a reduction")
                new[current] = active[current]
            elif isinstance(current, Reduce):
                new[current] = rebuild(current, (free_part(current.body, inner, True),))
            elif expanded or not current.children:
                new[current] = rebuild(current, tuple(new[child] for child in current.children))
            else:
                stack.append((current, True))
                stack.extend((child, False) for child in current.children)
        return new[part]

    return free_part(node, mapping, False)
