"""A node of a target's tree: a value of some width, immutable, hashable, bounded in size and depth by construction.

Python operators and the parser build the same *normal* trees: arithmetic on constants is carried out exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NoReturn, TypeAlias

from sumformer.errors import TargetError

BinaryOp: TypeAlias = Literal["+", "-", "*", "/"]
Scalar: TypeAlias = "Node | int | float | Fraction | Decimal"

MAX_DEPTH = 320  # a chain of 300 additions fits, and a function that recurses over a tree stays far from Python's limit
MAX_SIZE = 200_000  # of any intermediate tree; what is written as a target is smaller still (limits in parser.py)
MAX_WIDTH = 65_536

_NOTHING: frozenset[str] = frozenset()


class Node:
    """A sub-expression: `width` coordinates, `children`, `parameters` (its other fields), free names, size, depth."""

    __slots__ = ("_hash", "children", "depth", "free", "parameters", "size", "width")
    __array_ufunc__ = None  # so that numpy scalars defer to the operators below
    __match_args__: tuple[str, ...] = ()
    width: int
    children: tuple[Node, ...]
    parameters: tuple[Any, ...]
    free: frozenset[str]
    size: int
    depth: int
    _hash: int

    def _seal(self, width: int, free: frozenset[str] | None = None) -> None:
        """Check the bounds and record what follows from the fields; every node ends its construction here."""
        fields = [getattr(self, name) for name in self.__match_args__]
        children = tuple(c for f in fields for c in (f if isinstance(f, tuple) else (f,)) if isinstance(c, Node))
        parameters = tuple(f for f in fields if not isinstance(f, Node | tuple))
        size, depth = 1 + sum(c.size for c in children), 1 + max((c.depth for c in children), default=0)
        if depth > MAX_DEPTH:
            hint = "a long sum is less deep in parts: (a + b + …) + (c + d + …)"
            raise TargetError(f"the expression is nested deeper than {MAX_DEPTH} levels; {hint}")
        if size > MAX_SIZE:
            raise TargetError(f"the expression has more than {MAX_SIZE} nodes")
        if not 1 <= width <= MAX_WIDTH:
            raise TargetError(f"a value has width 1 to {MAX_WIDTH}, got width {width}")
        free = _NOTHING.union(*(c.free for c in children)) if free is None else free
        key = hash((type(self).__name__, parameters, children))
        for name, value in zip(Node.__slots__, (key, children, depth, free, parameters, size, width), strict=True):
            object.__setattr__(self, name, value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return NotImplemented
        pairs: list[tuple[Node, Node]] = [(self, other)]
        while pairs:
            a, b = pairs.pop()
            if a is b:
                continue
            if a._hash != b._hash or type(a) is not type(b) or a.parameters != b.parameters:
                return False
            if len(a.children) != len(b.children):
                return False
            pairs.extend(zip(a.children, b.children, strict=True))
        return True

    def __copy__(self) -> Node:
        return self

    def __deepcopy__(self, memo: object) -> Node:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in self.__match_args__)

    def __repr__(self) -> str:
        """The kind of node and its shape; `to_source` prints the expression."""
        parameters = ", ".join(str(p) for p in self.parameters)
        return f"<{type(self).__name__}({parameters}) width {self.width}, {self.size} nodes>"

    def __iter__(self) -> Iterator[Node]:
        raise TargetError("a value is not a Python sequence: did you mean sum_(…) over tokens, or total(…)?")

    def __bool__(self) -> NoReturn:
        raise TargetError("a value has no truth value: targets have no branches; use max_(…), min_(…) or abs(…)")

    def __add__(self, other: Scalar) -> Node:
        return self._join("+", self, other)

    def __radd__(self, other: Scalar) -> Node:
        return self._join("+", other, self)

    def __sub__(self, other: Scalar) -> Node:
        return self._join("-", self, other)

    def __rsub__(self, other: Scalar) -> Node:
        return self._join("-", other, self)

    def __mul__(self, other: Scalar) -> Node:
        return self._join("*", self, other)

    def __rmul__(self, other: Scalar) -> Node:
        return self._join("*", other, self)

    def __truediv__(self, other: Scalar) -> Node:
        return self._join("/", self, other)

    def __rtruediv__(self, other: Scalar) -> Node:
        return self._join("/", other, self)

    @staticmethod
    def _join(op: BinaryOp, left: Scalar, right: Scalar) -> Node:
        # The module of the constructors builds on this one, so the operators look it up when they are used.
        from sumformer.targets.arithmetic import as_node, combine

        return combine(op, as_node(left), as_node(right))

    def __neg__(self) -> Node:
        from sumformer.targets.arithmetic import negate

        return negate(self)

    def __pos__(self) -> Node:
        return self

    def __abs__(self) -> Node:
        from sumformer.targets.tree import Unary

        return Unary("abs", self)

    def __pow__(self, exponent: int) -> Node:
        from sumformer.targets.arithmetic import raise_to

        return raise_to(self, exponent)

    def __getitem__(self, key: int | slice) -> Node:
        from sumformer.targets.arithmetic import take, take_one

        if not isinstance(key, slice):
            return take_one(self, key)
        if key.step is not None:
            raise TargetError("a slice of coordinates has no step")
        return take(self, key.start, key.stop)
