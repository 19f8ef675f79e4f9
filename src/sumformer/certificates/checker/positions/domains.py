"""log v, √v and 1/v of f as it was written: v > 0, v ≥ 0, v ≠ 0 at all places q, p, for all tokens of the box.

Canonical forms cancel 0·log(i − 9) and √(1 − i) − √(1 − i), so that they say nothing of it. v is enclosed at all places
at once; where this is too coarse, the target that is proved has to have the same v, of the same form, under the same
operation: there its own proof answers for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.checker.canonical import CanonicalForms, Form
from sumformer.certificates.checker.interval import Interval, from_fraction
from sumformer.certificates.checker.token_values import ListedIntervals, fold
from sumformer.certificates.checker.tree_values import Leaf, applied
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.domain import Box
from sumformer.targets.node import Node
from sumformer.targets.printing import to_source
from sumformer.targets.tree import Binary, Const, Power, Reduce, Token, Unary
from sumformer.targets.walk import postorder, reductions

Ints = NDArray[np.int64]
FormsAt = Callable[[int, int | None], CanonicalForms]
_OPS = ListedIntervals()
_OUTSIDE: dict[str, Callable[[Interval], Any]] = {
    "log": lambda v: ~(v.lo > 0),
    "sqrt": lambda v: ~(v.lo >= 0),
    "1/": lambda v: ~((v.lo > 0) | (v.hi < 0)),
}


def partial(part: Node) -> tuple[str, Node] | None:
    """The operation that is not defined for all numbers, and its v."""
    match part:
        case Unary("log" | "sqrt" as fn, arg):
            return fn, arg
        case Binary("/", _, right) if not isinstance(right, Const):
            return "1/", right
        case Power(arg, k) if k < 0:
            return "1/", arg
    return None


@dataclass(frozen=True)
class Places:
    """Pairs of places, the own one `q` and another `p` (or none), and the tokens there."""

    q: Ints
    p: Ints | None
    x: list[Interval]
    y: list[Interval] | None

    def leaf(self, known: Mapping[Reduce, list[Interval]]) -> Leaf[Interval]:
        """`known`: the reductions' values for each q."""

        def leaf(part: Node) -> list[Interval] | None:
            if isinstance(part, Token):
                return self.x if part.name == "x" else self.y
            if isinstance(part, Reduce):
                return [Interval(v.lo[self.q - 1], v.hi[self.q - 1]) for v in known[part]]
            return None

        return leaf


def check_domains(written: Node, proved: Node, box: Box, n: int, forms: FormsAt) -> None:
    """`Unproved` where `written` may not be defined; its reductions are those of `proved`, one by one."""
    if not any(partial(part) for part in postorder(written)):
        return
    own = np.arange(1, n + 1)
    q, p = np.repeat(own, n), np.tile(own, n)
    q, p = q[q != p], p[q != p]
    x = _tokens(box, own)
    apart, itself = Places(q, p, _tokens(box, q), _tokens(box, p)), Places(own, own, x, x)
    known: dict[Reduce, list[Interval]] = {}
    with np.errstate(all="ignore"):
        for mine, its in zip(reductions(written), reductions(proved), strict=True):
            rows = _enclosed(mine.body, its.body, apart, known, forms, (n, n - 1))
            values = [[Interval(v.lo[:, k], v.hi[:, k]) for v in rows] for k in range(n - 1)]
            if not mine.kind.endswith("_others"):
                values.append(_enclosed(mine.body, its.body, itself, known, forms, (n,)))
            known[mine] = fold(mine, _OPS, [v * mine.width if len(v) == 1 else v for v in values])
        _enclosed(written, proved, Places(own, None, x, None), known, forms, (n,))


def _tokens(box: Box, places: Ints) -> list[Interval]:
    """𝒳 × {place}."""
    free = zip(box.lower[:-1], box.upper[:-1], strict=True)
    ends = [Interval(from_fraction(low).lo, from_fraction(high).hi) for low, high in free]
    return [*ends, Interval(places.astype(np.float64), places.astype(np.float64))]


def _enclosed(
    node: Node,
    proved: Node,
    places: Places,
    known: Mapping[Reduce, list[Interval]],
    forms: FormsAt,
    shape: tuple[int, ...],
) -> list[Interval]:
    """`node` at all places, in this shape, every operation in it shown to be defined."""
    leaf = places.leaf(known)
    values: dict[Node, list[Interval]] = {}
    for part in postorder(node, into_reductions=False):
        found, value = partial(part), leaf(part)
        if found is not None and _outside(*found, values[found[1]], proved, places, forms):
            value = [_anything(found[0]) for _ in range(part.width)]
        values[part] = applied(part, _OPS, [values[v] for v in part.children]) if value is None else value
    flat = [v.broadcast_to(places.q.shape) for v in values[node]]
    return [Interval(v.lo.reshape(shape), v.hi.reshape(shape)) for v in flat]


def _anything(op: str) -> Interval:
    """A value that another proof answers for; a new one each time, since v − v = 0."""
    return Interval(np.asarray(0.0 if op == "sqrt" else -np.inf), np.asarray(np.inf))


def _outside(op: str, v: Node, values: list[Interval], proved: Node, places: Places, forms: FormsAt) -> bool:
    """Whether the enclosure of v leaves the domain somewhere, where the target has to have the same operation."""
    outside = [np.broadcast_to(_OUTSIDE[op](value), places.q.shape) for value in values]
    for k in np.flatnonzero(np.any(outside, axis=0)):
        q, p = int(places.q[k]), None if places.p is None else int(places.p[k])
        at = forms(q, p)
        pairs = (pair for part in postorder(proved, into_reductions=False) if (pair := partial(part)) is not None)
        there = {_key(op, form) for other, arg in pairs if other == op for form in at.of(arg)}
        for form in (form for form, mask in zip(at.of(v), outside, strict=True) if mask[k]):
            if not form or _key(op, form) not in there:
                where = f"i = {q}" if p is None else f"i = {q}, j = {p}"
                raise Unproved(f"{op}({to_source(v)[:60]}) is not shown to exist at {where}")
    return bool(np.any(outside))


def _key(op: str, form: Form) -> frozenset[Any]:
    """v; for 1/v a multiple of it."""
    scale = form[min(form)] if op == "1/" and form else Fraction(1)
    return frozenset((monomial, coefficient / scale) for monomial, coefficient in form.items())
