"""g(x; y_1, …, y_m) = f(X)_i for the own token x and the others, in any arithmetic: reductions are sums over a list.

A difference of one object with itself is exactly 0, so that the own token's term in a sum over all tokens does not
count its range twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

from sumformer.algebra.tracked import Tracked
from sumformer.targets import Node, Reduce, reductions
from sumformer.targets.evaluate import Environment, Operations, evaluate


class _WithoutOwn:
    """The same operations, with a − a = 0 for one object a."""

    def __init__(self, ops: Operations[Any]) -> None:
        self._ops = ops

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ops, name)

    def sub(self, a: Any, b: Any) -> Any:
        return self._ops.mul(self._ops.const(Fraction(0)), a) if a is b else self._ops.sub(a, b)


def token_value(expression: Node, ops: Operations[Any], own: Any, others: Any, m: int) -> Any:
    """The value at the own token (…, d); `others` (m, …, d) has one more axis, in front."""
    reduced: dict[Reduce, Any] = {}
    arithmetic: Any = _WithoutOwn(ops)

    def body(part: Reduce, y: Any) -> Any:
        return evaluate(part.body, arithmetic, Environment(own, y, reduced.__getitem__))

    for part in reductions(expression):  # inner ones first
        values = [] if part.kind.endswith("_others") else [body(part, own)]
        if m:
            every = body(part, others)
            values += [_take(every, j) for j in range(m)]
        reduced[part] = _fold(part.kind, arithmetic, values)
    return evaluate(expression, arithmetic, Environment(x=own, reduce=reduced.__getitem__))


def _take(value: Any, j: int) -> Any:
    return Tracked(value.range[j], value.error[j]) if isinstance(value, Tracked) else value[j]


def _fold(kind: str, ops: Any, values: Sequence[Any]) -> Any:
    if kind in ("max", "min"):
        return reduce(lambda a, b: ops.extremum(kind, a, b), values)
    total = reduce(ops.add, values)
    return total if kind.startswith("sum") else ops.div(total, ops.const(Fraction(len(values))))
