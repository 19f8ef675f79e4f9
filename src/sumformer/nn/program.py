"""An expression as a straight-line program.

The tree is walked once, at construction, so that forward, and a compiler that traces it, sees only tensor operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from sumformer.nn.network_operations import NetworkOperations, as_float
from sumformer.targets import Node, Reduce, postorder
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
    Slice,
    Token,
    Total,
    Unary,
)

Instruction = tuple[str, tuple[int, ...], tuple[Any, ...]]

_BINARY = {"+": "add", "-": "sub", "*": "mul", "/": "div"}


class Program:
    """Instructions (name, argument places, constants); the last one's value is the result."""

    def __init__(self, node: Node, reductions: Mapping[Reduce, int]) -> None:
        parts = postorder(node, into_reductions=False)
        place = {part: i for i, part in enumerate(parts)}
        self.instructions = [_instruction(part, place, reductions) for part in parts]

    def run(self, ops: NetworkOperations, x: Tensor | None, y: Tensor | None, reduced: Sequence[Tensor]) -> Tensor:
        """The value for tokens x or y (…, d), reductions given in order."""
        values: list[Any] = []
        for name, places, data in self.instructions:
            if name == "x":
                values.append(x)
            elif name == "y":
                values.append(y)
            elif name == "reduced":
                values.append(reduced[data[0]])
            elif name == "const":
                values.append(ops.number(data[0]))
            elif name == "cat":
                values.append(ops.cat([values[i] for i in places]))
            elif name in ("unary", "extremum"):
                values.append(getattr(ops, name)(data[0], *[values[i] for i in places]))
            else:
                values.append(getattr(ops, name)(*[values[i] for i in places], *data))
        result: Tensor = values[-1]
        return result


def _instruction(node: Node, place: Mapping[Node, int], reductions: Mapping[Reduce, int]) -> Instruction:
    places = () if isinstance(node, Reduce) else tuple(place[child] for child in node.children)
    match node:
        case Token(name):
            return name, (), ()
        case Const(value):
            return "const", (), (as_float(value),)
        case Reduce():
            return "reduced", (), (reductions[node],)
        case Binary(op):
            return _BINARY[op], places, ()
        case Power(_, k):
            return "power", places, (k,)
        case Slice(_, start, stop):
            return "slice", places, (start, stop)
        case Unary(fn):
            return "unary", places, (fn,)
        case Extremum(op_):
            return "extremum", places, (op_,)
        case Neg() | Cat() | Dot() | Norm2() | Norm() | Total():
            return type(node).__name__.lower(), places, ()
    raise AssertionError(f"no instruction for {node!r}")
