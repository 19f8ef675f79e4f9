"""Constructors that keep trees normal: ±c, c+c', c·c', c/c', c^k on constants are carried out exactly, nothing else is.

A result too long to be a constant (`tree.MAX_BITS`) is left as it was written.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from sumformer.errors import TargetError
from sumformer.targets.node import BinaryOp, Node, Scalar
from sumformer.targets.tree import Binary, Const, Neg, Power, Slice, is_short

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


def raise_to(arg: Node, exponent: int) -> Node:
    """arg^k, carried out on a constant."""
    power = Power(arg, exponent)
    if isinstance(arg, Const):
        value = Fraction(arg.value**exponent)
        return Const(value) if is_short(value) else power
    return power


def take_one(arg: Node, index: int) -> Node:
    """v_index, counted from the end when negative."""
    if not isinstance(index, int) or isinstance(index, bool) or not -arg.width <= index < arg.width:
        raise TargetError(f"coordinate {index!r} does not exist: the value has width {arg.width}")
    start = index % arg.width
    return Slice(arg, start, start + 1)


def take(arg: Node, start: int | None, stop: int | None) -> Node:
    """(v_start, …, v_{stop−1}); negative bounds count from the end, an absent bound is the end itself."""
    first, last = (0 if start is None else start), (arg.width if stop is None else stop)
    return Slice(arg, first + arg.width if first < 0 else first, last + arg.width if last < 0 else last)
