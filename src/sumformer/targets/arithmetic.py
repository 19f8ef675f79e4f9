"""Constructors that keep trees normal: ±c, c+c', c·c', c/c', c^k on constants are carried out exactly.

A result too long to be a constant (`tree.MAX_BITS`) is left as it was written. Even powers of ‖v‖ and |e| are those of
‖v‖² and e, which are analytic, and powers by half an integer those of a root; nothing else is rewritten.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from operator import index

from sumformer.errors import TargetError
from sumformer.targets.node import BinaryOp, Node, Scalar
from sumformer.targets.tree import Binary, Const, Neg, Norm, Norm2, Power, Slice, Token, Unary, is_short

_MAX_DECIMAL_EXPONENT = 2000  # refuses Decimal("1e999999999") before it is expanded


def as_node(value: Scalar) -> Node:
    """A number as a constant; a float is the decimal it prints as (0.1 is 1/10), a node is itself."""
    match value:
        case Node():
            return value
        case bool():
            raise TargetError(f"expected a number or an expression, got the truth value {value}")
        case int() | Fraction():
            return Const(Fraction(value))
        case float() if math.isfinite(value):
            return Const(Fraction(repr(float(value))))
        case Decimal() if value.is_finite() and abs(value.adjusted()) <= _MAX_DECIMAL_EXPONENT:
            return Const(Fraction(value))
        case float() | Decimal():
            raise TargetError(f"expected a finite number of moderate size, got {value}")
        case _:
            raise TargetError(f"expected a number or an expression, got {type(value).__name__}")


def combine(op: BinaryOp, left: Node, right: Node) -> Node:
    """left op right, carried out when both are constants."""
    if isinstance(left, Const) and isinstance(right, Const):
        a, b = left.value, right.value
        value = a + b if op == "+" else a - b if op == "-" else a * b if op == "*" else a / b if b else None
        if value is not None and is_short(value):
            return Const(value)
    return Binary(op, left, right)


def negate(arg: Node) -> Node:
    """−arg, carried out on a constant."""
    return Const(-arg.value) if isinstance(arg, Const) else Neg(arg)


def raise_to(arg: Node, exponent: int | float | Fraction) -> Node:
    """arg^k, carried out on a constant; k may be half an integer."""
    if type(exponent) is not int:
        arg, exponent = _root(arg, exponent)
    even = exponent % 2 == 0
    match arg:
        case Norm(v) if even:
            return raise_to(Norm2(v), exponent // 2)
        case Unary("abs", e) if even:
            return raise_to(e, exponent)
        case _ if exponent == 1 and isinstance(arg, Norm2 | Unary):
            return arg
    power = Power(arg, exponent)
    if isinstance(arg, Const):
        value = Fraction(arg.value**exponent)
        return Const(value) if is_short(value) else power
    return power


def _root(arg: Node, exponent: float | Fraction) -> tuple[Node, int]:
    """(√arg, k) with exponent k/2, or (arg, k) for an integer k that is not written as one."""
    if hasattr(exponent, "__index__") and not isinstance(exponent, bool):
        return arg, index(exponent)
    if isinstance(exponent, Fraction) or (isinstance(exponent, float) and math.isfinite(exponent)):
        k = Fraction(repr(float(exponent))) if isinstance(exponent, float) else exponent
        if k.denominator == 1:
            return arg, int(k)
        if k.denominator == 2:
            return Unary("sqrt", arg), int(2 * k)
    raise TargetError(
        f"expected an exponent that is an integer or half of one, got {exponent}; exp(log(a)/3) is a**(1/3)"
    )


def take_one(arg: Node, index: int) -> Node:
    """v_index, counted from the end when negative."""
    if not isinstance(index, int) or isinstance(index, bool) or not -arg.width <= index < arg.width:
        exist = "only coordinate 0" if arg.width == 1 else f"coordinates 0 to {arg.width - 1}"
        hint = "" if not isinstance(arg, Token) else "; --dim N (d=N) gives tokens more of them"
        raise TargetError(f"coordinate {index!r} does not exist: the value has width {arg.width}, {exist}{hint}")
    start = index % arg.width
    return Slice(arg, start, start + 1)


def take(arg: Node, start: int | None, stop: int | None) -> Node:
    """(v_start, …, v_{stop−1}); negative bounds count from the end, an absent bound is the end itself."""
    first, last = (0 if start is None else start), (arg.width if stop is None else stop)
    return Slice(arg, first + arg.width if first < 0 else first, last + arg.width if last < 0 else last)
