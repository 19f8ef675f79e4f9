"""A target's tree as a polynomial over any ring: +, −, ·, integer powers ≥ 0, division by constants, sums over y."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NoReturn

from sumformer.errors import InputError, RefusedError
from sumformer.targets import (
    Binary,
    Const,
    Environment,
    Extremum,
    Node,
    Norm,
    Operations,
    Power,
    Reduce,
    Unary,
    evaluate,
    rebuild,
    reductions,
    to_source,
    transform,
)

Element = Any
"""Of the ring: whatever has +, − and ·."""


def as_polynomial(node: Node) -> Node:
    """The same tree with u/c written (1/c)·u; refuses what is no polynomial, all reasons at once."""
    reasons: list[str] = []

    def change(part: Node, children: tuple[Node, ...]) -> Node:
        match part:
            case Binary("/") if isinstance(children[1], Const) and children[1].value:
                return rebuild(Binary("*", part.left, part.right), (Const(1 / children[1].value), children[0]))
            case Binary("/"):
                reasons.append(f"{to_source(part)} divides by something that is not a constant")
            case Unary() | Norm() | Extremum():
                reasons.append(f"{to_source(part)} is not a polynomial")
            case Power(_, k) if k < 0 and not isinstance(children[0], Const):
                reasons.append(f"{to_source(part)} has a negative power")
            case Reduce(kind) if kind in ("max", "min"):
                reasons.append(f"{to_source(part)} is a {kind} over tokens")
        return rebuild(part, children)

    changed = transform(node, change)
    if reasons:
        raise RefusedError("the target is not a polynomial", reasons)
    return changed


class RingOperations:
    """Vectors of elements of a ring, as tuples."""

    def __init__(self, constant: Callable[[Fraction], Element]) -> None:
        self.constant = constant

    def const(self, value: Fraction) -> tuple[Element, ...]:
        return (self.constant(value),)

    def add(self, a: tuple[Element, ...], b: tuple[Element, ...]) -> tuple[Element, ...]:
        return tuple(u + v for u, v in _paired(a, b))

    def sub(self, a: tuple[Element, ...], b: tuple[Element, ...]) -> tuple[Element, ...]:
        return tuple(u - v for u, v in _paired(a, b))

    def mul(self, a: tuple[Element, ...], b: tuple[Element, ...]) -> tuple[Element, ...]:
        return tuple(u * v for u, v in _paired(a, b))

    def neg(self, v: tuple[Element, ...]) -> tuple[Element, ...]:
        return tuple(-u for u in v)

    def power(self, v: tuple[Element, ...], k: int) -> tuple[Element, ...]:
        return tuple(u**k for u in v)

    def cat(self, values: Sequence[tuple[Element, ...]]) -> tuple[Element, ...]:
        return tuple(u for v in values for u in v)

    def slice(self, v: tuple[Element, ...], start: int, stop: int) -> tuple[Element, ...]:
        return v[start:stop]

    def dot(self, a: tuple[Element, ...], b: tuple[Element, ...]) -> tuple[Element, ...]:
        return self.total(tuple(u * v for u, v in zip(a, b, strict=True)))

    def norm2(self, v: tuple[Element, ...]) -> tuple[Element, ...]:
        return self.dot(v, v)

    def total(self, v: tuple[Element, ...]) -> tuple[Element, ...]:
        return (sum(v[1:], v[0]),)

    def div(self, a: tuple[Element, ...], b: tuple[Element, ...]) -> NoReturn:
        _refuse("a division")

    def unary(self, fn: str, v: tuple[Element, ...]) -> NoReturn:
        _refuse(fn)

    def extremum(self, op: str, a: tuple[Element, ...], b: tuple[Element, ...]) -> NoReturn:
        _refuse(op)

    def norm(self, v: tuple[Element, ...]) -> NoReturn:
        _refuse("norm")


def share(reduction: Reduce, n: int) -> Fraction:
    """What Σ is multiplied by: 1, 1/n for a mean, 1/(n−1) for a mean of the others."""
    if reduction.kind == "mean_others" and n < 2:
        raise InputError("mean_others needs n ≥ 2 tokens")
    return Fraction(1, {"mean": n, "mean_others": n - 1}.get(reduction.kind, 1))


def over_tokens(node: Node, ops: Operations[Any], tokens: Sequence[Any]) -> Any:
    """f(X)_1 with every sum over tokens written out, X = `tokens`."""
    values: dict[Reduce, Any] = {}
    for part in reductions(node):
        others = tokens[1:] if part.kind.endswith("_others") else tokens
        bodies = [evaluate(part.body, ops, Environment(tokens[0], y, values.__getitem__)) for y in others]
        total = bodies[0] if bodies else ops.cat([ops.const(Fraction(0))] * part.width)
        for body in bodies[1:]:
            total = ops.add(total, body)
        values[part] = ops.mul(ops.const(share(part, len(tokens))), total)
    return evaluate(node, ops, Environment(tokens[0], None, values.__getitem__))


def _paired(a: tuple[Element, ...], b: tuple[Element, ...]) -> list[tuple[Element, Element]]:
    """Width 1 broadcasts."""
    width = max(len(a), len(b))
    return list(zip(a * (width // len(a)), b * (width // len(b)), strict=True))


def _refuse(what: str) -> NoReturn:
    raise RefusedError("the target is not a polynomial", [f"it holds {what}"])
