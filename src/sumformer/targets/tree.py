"""The tree of a target: f(X)_i = e(x, ⊕_y e'(x, y)), built from the fourteen kinds of node below.

`x` is the own token x_i; `y` is the token bound by the innermost enclosing `Reduce`. A nested reduction is evaluated at
the own token and cannot see the outer y. Widths are checked when a node is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from sumformer.errors import TargetError
from sumformer.targets.node import BinaryOp as BinaryOp
from sumformer.targets.node import Node as Node

TokenName: TypeAlias = Literal["x", "y"]
Function: TypeAlias = Literal["exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "abs"]
ExtremumOp: TypeAlias = Literal["min", "max"]
ReduceKind: TypeAlias = Literal["sum", "mean", "sum_others", "mean_others", "max", "min"]

MAX_BITS = 4096  # of a constant's numerator and of its denominator
MAX_EXPONENT = 64


def is_short(value: Fraction) -> bool:
    """Whether `value` may be a constant of a tree."""
    return max(value.numerator.bit_length(), value.denominator.bit_length()) <= MAX_BITS


def _choose(what: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise TargetError(f"{what} must be one of {', '.join(allowed)}; got {value!r}")


def _common_width(what: str, left: Node, right: Node) -> int:
    if left.width != right.width and 1 not in (left.width, right.width):
        raise TargetError(
            f"{what} joins widths {left.width} and {right.width}: expected equal widths, or one of them 1"
        )
    return max(left.width, right.width)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Const(Node):
    """c ∈ ℚ, exactly as written: 0.1 is 1/10."""

    value: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.value, Fraction):
            raise TargetError(f"Const takes a Fraction, got {self.value!r}; as_node(…) converts numbers")
        if not is_short(self.value):
            raise TargetError(f"a constant has at most {MAX_BITS} bits in its numerator and in its denominator")
        self._seal(1)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Token(Node):
    """x (own) or y (bound by a reduction) ∈ ℝ^d."""

    name: TokenName
    d: int

    def __post_init__(self) -> None:
        _choose("a token's name", self.name, get_args(TokenName))
        if not isinstance(self.d, int) or isinstance(self.d, bool):
            raise TargetError(f"a token's width d is an integer, got {self.d!r}")
        self._seal(self.d, frozenset((self.name,)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Slice(Node):
    """(v_start, …, v_{stop−1}), 0 ≤ start < stop ≤ width."""

    arg: Node
    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop <= self.arg.width:
            span = f"{self.start}:{self.stop}"
            raise TargetError(f"coordinates {span} do not exist or are none: the value has width {self.arg.width}")
        self._seal(self.stop - self.start)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cat(Node):
    """(u, v, …): coordinates one after another."""

    args: tuple[Node, ...]

    def __post_init__(self) -> None:
        if not self.args:
            raise TargetError("cat(…) expected at least one argument, got none")
        self._seal(sum(a.width for a in self.args))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Neg(Node):
    """−v."""

    arg: Node

    def __post_init__(self) -> None:
        self._seal(self.arg.width)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Binary(Node):
    """u + v, u − v, u·v, u/v by coordinate; width 1 broadcasts."""

    op: BinaryOp
    left: Node
    right: Node

    def __post_init__(self) -> None:
        _choose("an operator", self.op, get_args(BinaryOp))
        if self.op == "/" and isinstance(self.right, Const) and self.right.value == 0:
            raise TargetError("division by the constant 0")
        self._seal(_common_width(f"'{self.op}'", self.left, self.right))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Power(Node):
    """v^k by coordinate, k an integer, |k| ≤ 64; v^0 = 1."""

    arg: Node
    exponent: int

    def __post_init__(self) -> None:
        k = self.exponent
        if not isinstance(k, int) or isinstance(k, bool) or abs(k) > MAX_EXPONENT:
            raise TargetError(f"an exponent is an integer from -{MAX_EXPONENT} to {MAX_EXPONENT}, got {k!r}")
        if k < 0 and isinstance(self.arg, Const) and self.arg.value == 0:
            raise TargetError("a negative power of the constant 0")
        self._seal(self.arg.width)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unary(Node):
    """exp, log, sqrt, sin, cos, tanh, sigmoid(t) = 1/(1+e^{−t}), abs, by coordinate."""

    fn: Function
    arg: Node

    def __post_init__(self) -> None:
        _choose("a function", self.fn, get_args(Function))
        self._seal(self.arg.width)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Extremum(Node):
    """min(u, v) or max(u, v) by coordinate; width 1 broadcasts."""

    op: ExtremumOp
    left: Node
    right: Node

    def __post_init__(self) -> None:
        _choose("an extremum", self.op, get_args(ExtremumOp))
        self._seal(_common_width(f"{self.op}(…)", self.left, self.right))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dot(Node):
    """Σ_c u_c v_c (bilinear); equal widths."""

    left: Node
    right: Node

    def __post_init__(self) -> None:
        if self.left.width != self.right.width:
            raise TargetError(f"dot(…) expected equal widths, got {self.left.width} and {self.right.width}")
        self._seal(1)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Norm2(Node):
    """Σ_c v_c², the square of the Euclidean norm."""

    arg: Node

    def __post_init__(self) -> None:
        self._seal(1)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Norm(Node):
    """‖v‖ = √(Σ_c v_c²)."""

    arg: Node

    def __post_init__(self) -> None:
        self._seal(1)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Total(Node):
    """Σ_c v_c, over coordinates."""

    arg: Node

    def __post_init__(self) -> None:
        self._seal(1)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reduce(Node):
    """⊕_j e(x_i, x_j): over all tokens, or over j ≠ i for the kinds `…_others`; evaluated at the own token."""

    kind: ReduceKind
    body: Node

    def __post_init__(self) -> None:
        _choose("a reduction", self.kind, get_args(ReduceKind))
        if "y" not in self.body.free:
            hint = f"{self.kind}(a, b)?" if self.kind in ("max", "min") else "total(…), the sum over coordinates?"
            if "x" in self.body.free and self.body.width == 1:
                hint = f"{self.kind}(y)? x is the own token, and what is reduced already is one number for it"
            raise TargetError(f"{self.kind}(…) runs over the tokens y, but y is not in its body: did you mean {hint}")
        self._seal(self.body.width, frozenset(("x",)))
