"""Random trees of the language, and a naive evaluation of them: the definition, token by token, in Python floats."""

import math
from fractions import Fraction
from random import Random

from sumformer.errors import TargetError
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
    as_node,
)
from sumformer.targets.arithmetic import combine, negate, raise_to

KINDS = ("sum", "mean", "sum_others", "mean_others", "max", "min")
SMOOTH = ("sin", "cos", "tanh", "sigmoid", "abs")


def random_constant(rng: Random) -> Node:
    pick = rng.randrange(6)
    if pick == 0:
        return as_node(rng.randint(-5, 5))
    if pick == 1:
        return as_node(Fraction(rng.randint(-99, 99), rng.randint(1, 99)))
    if pick == 2:
        return as_node(round(rng.uniform(-10, 10), rng.randint(0, 6)))
    if pick == 3:
        return as_node(Fraction(rng.randint(-(10**6), 10**6)) * Fraction(10) ** rng.randint(-300, 300))
    if pick == 4:
        return as_node(rng.uniform(-1, 1) * 10.0 ** rng.randint(-30, 30))
    return as_node(Fraction(rng.getrandbits(rng.randint(1, 4096)) + 1, rng.getrandbits(rng.randint(1, 4000)) + 1))


def random_tree(rng: Random, d: int, depth: int, *, y: bool = False, tame: bool = False) -> Node:
    """A normal tree; `tame` ones have moderate values on [0,1]^d everywhere."""

    def grow() -> Node:
        return random_tree(rng, d, depth - 1, y=y, tame=tame)

    if depth <= 0 or rng.random() < 0.1:
        if rng.random() < 0.3:
            return as_node(Fraction(rng.randint(-8, 8), rng.randint(1, 4))) if tame else random_constant(rng)
        return Token("y" if y and rng.random() < 0.6 else "x", d)
    pick = rng.randrange(13)
    try:
        if pick <= 2:
            a, b = _fit(rng, grow(), grow())
            op = rng.choice("+-*/")
            b = 2 + Unary("sin", b) if tame and op == "/" else b
            return combine(op, a, b)
        if pick == 3:
            return negate(grow())
        if pick == 4:
            return raise_to(grow(), rng.randint(0, 3) if tame else rng.randint(-64, 64))
        if pick == 5:
            fn = rng.choice((*SMOOTH, "exp", "log", "sqrt"))
            arg = grow()
            if tame and fn in ("exp", "log", "sqrt"):
                arg = 2 + Unary("sin", arg)
            return Unary(fn, arg)
        if pick == 6:
            return Extremum(rng.choice(("min", "max")), *_fit(rng, grow(), grow()))
        if pick == 7:
            a, b = _fit(rng, grow(), grow())
            return Dot(a, b) if a.width == b.width else Dot(Total(a), Total(b))
        if pick == 8:
            return rng.choice((Norm2, Norm, Total))(grow())
        if pick == 9:
            return Cat(tuple(grow() for _ in range(rng.randint(1, 3))))
        if pick == 10:
            arg = grow()
            start = rng.randrange(arg.width)
            return Slice(arg, start, rng.randint(start + 1, arg.width))
        body = random_tree(rng, d, depth - 1, y=True, tame=tame)
        if "y" not in body.free:
            body = body * Total(Token("y", d))
        return Reduce(rng.choice(KINDS), body)
    except TargetError:  # a division by the constant 0, say
        return Token("x", d)


def _fit(rng: Random, a: Node, b: Node) -> tuple[Node, Node]:
    if a.width != b.width and 1 not in (a.width, b.width):
        return (a, Total(b)) if rng.random() < 0.5 else (Total(a), b)
    return a, b


def naive(node: Node, X: list[list[float]], i: int, j: int | None = None) -> list[float]:
    """The value at own token i and other token j, by the definition."""

    def of(child: Node) -> list[float]:
        return naive(child, X, i, j)

    match node:
        case Const(value):
            return [float(value)]
        case Token(name):
            return X[i] if name == "x" else X[j]
        case Slice(arg, start, stop):
            return of(arg)[start:stop]
        case Cat(args):
            return [v for arg in args for v in of(arg)]
        case Neg(arg):
            return [-v for v in of(arg)]
        case Power(arg, k):
            return [v**k for v in of(arg)]
        case Unary(fn, arg):
            return [_UNARY[fn](v) for v in of(arg)]
        case Binary(op, left, right) | Extremum(op, left, right):
            a, b = of(left), of(right)
            width = max(len(a), len(b))
            a, b = (v * width if len(v) == 1 else v for v in (a, b))
            return [_BINARY[op](p, q) for p, q in zip(a, b, strict=True)]
        case Dot(left, right):
            return [sum(p * q for p, q in zip(of(left), of(right), strict=True))]
        case Norm2(arg):
            return [sum(v * v for v in of(arg))]
        case Norm(arg):
            return [math.sqrt(sum(v * v for v in of(arg)))]
        case Total(arg):
            return [sum(of(arg))]
        case Reduce(kind, body):
            others = kind.endswith("_others")
            values = [naive(body, X, i, k) for k in range(len(X)) if not (others and k == i)]
            if kind in ("max", "min"):
                return [_BINARY_OF_MANY[kind](column) for column in zip(*values, strict=True)]
            sums = [sum(column) for column in zip(*values, strict=True)]
            return [s / len(values) for s in sums] if kind.startswith("mean") else sums
    raise AssertionError(node)


_UNARY = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "sigmoid": lambda t: 1 / (1 + math.exp(-t)) if t > -700 else 0.0,
    "abs": abs,
}
_BINARY_OF_MANY = {"max": max, "min": min}
_BINARY = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "min": min,
    "max": max,
}
