"""name(arguments) ↦ node: the functions of the language, how many arguments each takes, and help with wrong names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from typing import cast, get_args

from sumformer.errors import TargetError
from sumformer.targets.node import Node
from sumformer.targets.tree import (
    Cat,
    Dot,
    Extremum,
    ExtremumOp,
    Function,
    Norm,
    Norm2,
    Reduce,
    ReduceKind,
    Total,
    Unary,
)

_OF_ONE: dict[str, Callable[[Node], Node]] = {"norm2": Norm2, "norm": Norm, "total": Total}
FUNCTIONS = (*get_args(Function), *get_args(ReduceKind), *_OF_ONE, "dot", "cat")

_SOFT_RANK = "a soft rank, mean(sigmoid((x - y)/0.1))"
_COUNT = "--tokens N: the number of tokens has no name"
_ELSEWHERE = {
    "softmax": "exp(x)/sum(exp(y))",
    "logsumexp": "log(sum(exp(y)))",
    "lse": "log(sum(exp(y)))",
    "dist": "norm(x - y)",
    "distance": "norm(x - y)",
    "dist2": "norm2(x - y)",
    "inner": "dot",
    "z": "y, the token that is summed over",
    "average": "mean",
    "relu": "max(0, …)",
    "softplus": "log(1 + exp(…))",
    "gelu": "…*sigmoid(1.702*…), which is near it",
    "clip": "min(max(…, low), high)",
    "clamp": "min(max(…, low), high)",
    "sign": "tanh(…/0.1), which is continuous",
    "pow": "**",
    "square": "**2",
    "var": "mean((y - mean(y))**2)",
    "std": "sqrt(mean((y - mean(y))**2))",
    "cov": "mean((y[0] - mean(y[0]))*(y[1] - mean(y[1])))",
    "prod": "exp(sum(log(y)))",
    "ln": "log",
    "log2": "log(…)/log(2)",
    "log10": "log(…)/log(10)",
    "log1p": "log(1 + …)",
    "expm1": "exp(…) - 1",
    "tan": "sin(…)/cos(…)",
    "cosh": "(exp(…) + exp(-(…)))/2",
    "sinh": "(exp(…) - exp(-(…)))/2",
    "sort": _SOFT_RANK,
    "rank": _SOFT_RANK,
    "median": _SOFT_RANK,
    "argmax": _SOFT_RANK,
    "concat": "cat",
    "len": _COUNT,
    "count": _COUNT,
    "n": _COUNT,
    "i": "--positions (positions=True), where i is the own token's place",
    "j": "--positions (positions=True), where j is the other token's place",
    "pi": "3.141592653589793",
    "e": "exp(1), or exp(x) for a power of it",
    "X": "x",
    "Y": "y",
}
_NOTHING = ("arctan", "atan", "erf", "cross", "floor", "round")


def is_function(name: str) -> bool:
    return name in FUNCTIONS


def explain_name(name: str) -> str:
    """Why `name` is no name of the language, with the nearest one."""
    instead = _ELSEWHERE.get(name) or _ELSEWHERE.get(name.lower()) or _nearest(name)
    hint = f"did you mean {instead}? There are" if instead else "there are"
    return f"unknown name '{name[:40]}': {hint} the tokens x and y, numbers, and {', '.join(FUNCTIONS)}"


def _nearest(name: str) -> str | None:
    if token := re.fullmatch(r"([xy])(_\w{1,2}|')", name):  # x_i, y_j
        return str(token[1])
    known = () if name in _NOTHING else (*FUNCTIONS, "x", "y")
    return next(iter(difflib.get_close_matches(name.lower()[:40], known, n=1)), None)


def build_call(name: str, arguments: Sequence[Node]) -> Node:
    """The node of `name(*arguments)`."""
    if name in ("max", "min"):
        _count(name, arguments, (1, 2), f"; nest them: {name}(a, {name}(b, c))")
        if len(arguments) == 2:
            return Extremum(cast(ExtremumOp, name), *arguments)
        return Reduce(cast(ReduceKind, name), arguments[0])
    if name == "cat":
        return Cat(tuple(arguments))
    if name == "dot":
        _count(name, arguments, (2,))
        return Dot(*arguments)
    _count(name, arguments, (1,))
    if name in _OF_ONE:
        return _OF_ONE[name](arguments[0])
    if name in get_args(ReduceKind):
        return Reduce(cast(ReduceKind, name), arguments[0])
    if name in get_args(Function):
        return Unary(cast(Function, name), arguments[0])
    raise TargetError(explain_name(name))


def _count(name: str, arguments: Sequence[Node], allowed: tuple[int, ...], hint: str = "") -> None:
    if len(arguments) not in allowed:
        wanted = " or ".join(str(n) for n in allowed)
        plural = "s" if allowed[-1] > 1 else ""
        raise TargetError(f"{name}(…) expected {wanted} argument{plural}, got {len(arguments)}{hint}")
