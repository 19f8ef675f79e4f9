"""t ↦ its canonical source: minimal parentheses, exact constants; parse(to_source(t), d) == t for every normal tree."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from sumformer.targets.node import Node
from sumformer.targets.tokenizer import MAX_DECIMAL_EXPONENT
from sumformer.targets.tree import Binary, Cat, Const, Extremum, Neg, Power, Reduce, Slice, Token, Unary
from sumformer.targets.walk import postorder

# How tightly a text binds: a + b, a*b, -a, a**k, and what needs no parentheses anywhere.
_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = 1, 2, 3, 4, 5
_LONG = 24  # a decimal with more digits is printed as p/q

Printed = tuple[str, int]


def to_source(node: Node, names: Mapping[Node, str] | None = None) -> str:
    """The canonical source of `node`; sub-trees in `names` are called by their name."""
    done: dict[Node, Printed] = {}
    for part in postorder(node):
        name = None if names is None else names.get(part)
        done[part] = _print(part, [done[child] for child in part.children]) if name is None else (name, _ATOM)
    return done[node][0]


def _print(node: Node, children: list[Printed]) -> Printed:
    match node:
        case Const(value):
            return constant(value)
        case Token(name):
            return name, _ATOM
        case Slice(_, start, stop):
            span = f"{start}" if stop == start + 1 else f"{start}:{stop}"
            return f"{_at_least(_ATOM, children[0])}[{span}]", _ATOM
        case Neg():
            return f"-{_at_least(_SIGN, children[0])}", _SIGN
        case Power(_, exponent):
            return f"{_at_least(_ATOM, children[0])}**{exponent}", _POWER
        case Binary(("+" | "-") as op):
            return f"{_at_least(_SUM, children[0])} {op} {_at_least(_PRODUCT, children[1])}", _SUM
        case Binary(op):
            return f"{_at_least(_PRODUCT, children[0])}{op}{_at_least(_SIGN, children[1])}", _PRODUCT
    return f"{_name(node)}({', '.join(text for text, _ in children)})", _ATOM


def _name(node: Node) -> str:
    match node:
        case Unary(fn):
            return fn
        case Extremum(op):
            return op
        case Reduce(kind):
            return kind
        case Cat():
            return "cat"
    return type(node).__name__.lower()  # Dot, Norm2, Norm, Total


def _at_least(level: int, printed: Printed) -> str:
    text, binding = printed
    return text if binding >= level else f"({text})"


def constant(value: Fraction) -> Printed:
    """An exact constant: integer, short decimal, or p/q."""
    text = _decimal(abs(value))
    if text is None:
        return f"{value.numerator}/{value.denominator}", _PRODUCT
    return (f"-{text}", _SIGN) if value < 0 else (text, _ATOM)


def _decimal(value: Fraction) -> str | None:
    """`value` ≥ 0 as digits·10^exponent, or None when it is no short finite decimal."""
    twos, odd = _divide_out(value.denominator, 2)
    fives, rest = _divide_out(odd, 5)
    if rest != 1:
        return None
    places = max(twos, fives)
    number, exponent = value.numerator * 2 ** (places - twos) * 5 ** (places - fives), -places
    plain = str(number)
    if exponent == 0 and len(plain) <= 16:
        return plain
    digits = plain.rstrip("0") if number else "0"
    exponent += len(plain) - len(digits)
    leading = len(digits) + exponent  # digits before the decimal point
    if len(digits) > _LONG or abs(leading) > MAX_DECIMAL_EXPONENT:
        return plain if places == 0 else None
    if exponent < 0 < leading <= 16:
        return f"{digits[:leading]}.{digits[leading:]}"
    if exponent < 0 and -5 < leading <= 0:
        return f"0.{'0' * -leading}{digits}"
    return f"{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{leading - 1}"


def _divide_out(value: int, prime: int) -> tuple[int, int]:
    count = 0
    while value % prime == 0:
        value, count = value // prime, count + 1
    return count, value
