"""What depends on the places i, j alone, by rational operations: its value at all places 1 … n at once, exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from sumformer.targets.node import Node
from sumformer.targets.tree import Binary, Const, Extremum, Neg, Power, Reduce, Slice, Token, Unary
from sumformer.targets.walk import postorder

Values = Any  # an array of fractions that broadcasts to (n, n): i along the first axis, j along the second


class PlacedValues:
    """For tokens whose last coordinate, of d, is their place; every sub-tree is evaluated once."""

    def __init__(self, n: int, d: int) -> None:
        places = np.array([Fraction(k) for k in range(1, n + 1)], dtype=object)
        self._d, self._places = d, {"x": places[:, None], "y": places[None, :]}
        self._values: dict[Node, Values | None] = {}
        self._orders: dict[Node, tuple[Node, ...]] = {}

    def order(self, node: Node) -> tuple[Node, ...]:
        """Sub-trees after their children; those that are known here, and reductions, stand for all that is in them."""
        if node not in self._orders:
            for part in postorder(node, into_reductions=False):
                if part not in self._values:
                    self._values[part] = self._value(part)
            done: dict[Node, None] = {}
            stack = [(node, False)]
            while stack:
                part, expanded = stack.pop()
                if part in done:
                    continue
                if expanded or isinstance(part, Reduce) or self._values[part] is not None:
                    done[part] = None
                    continue
                stack.append((part, True))
                stack.extend((child, False) for child in part.children)
            self._orders[node] = tuple(done)
        return self._orders[node]

    def at(self, node: Node, q: int, p: int | None) -> Fraction | None:
        """The value for i = q, j = p."""
        values = self._values.get(node)
        if values is None:
            return None
        rows, columns = values.shape
        if columns > 1 and p is None:
            return None
        found: Fraction = values[q - 1 if rows > 1 else 0, (p or 1) - 1 if columns > 1 else 0]
        return found

    def _value(self, node: Node) -> Values | None:
        """None where it depends on more, is no rational function, or is not defined for all i and j."""
        if isinstance(node, Slice) and isinstance(node.arg, Token):
            return self._places[node.arg.name] if (node.start, node.stop) == (self._d - 1, self._d) else None
        if isinstance(node, Const):
            return np.array([[node.value]], dtype=object)
        of = [self._values.get(child) for child in node.children]
        if not of or node.width != 1 or any(v is None for v in of):
            return None
        try:
            return _applied(node, of)
        except ZeroDivisionError:
            return None


def _applied(node: Node, of: list[Values]) -> Values | None:
    match node:
        case Neg():
            return -of[0]
        case Binary("+"):
            return of[0] + of[1]
        case Binary("-"):
            return of[0] - of[1]
        case Binary("*"):
            return of[0] * of[1]
        case Binary("/"):
            return of[0] / of[1]
        case Power(_, k):
            return of[0] ** k
        case Unary("abs"):
            return abs(of[0])
        case Extremum(op):
            return (np.maximum if op == "max" else np.minimum)(of[0], of[1])
    return None
