"""f as it was written = f as it is proved, at whole positions: canonical forms with i = q, j = p for all q, p in 1 … n.

Reductions are matched one by one, inner ones first: equal bodies for all places make them equal, and equal expressions
over equal reductions make f equal. A reduction over the others has no p = q. Forms are equal wherever both are defined:
that f as written is defined everywhere is shown besides, in `domains`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction

from sumformer.certificates.checker.canonical import CanonicalForms, Form
from sumformer.certificates.checker.positions.domains import check_domains
from sumformer.certificates.checker.positions.placed import PlacedValues
from sumformer.certificates.checker.tree_values import applied
from sumformer.certificates.checker.verification import Unproved
from sumformer.errors import SumformerError
from sumformer.targets.node import Node
from sumformer.targets.parser import parse
from sumformer.targets.target import Target
from sumformer.targets.tree import Reduce, Token
from sumformer.targets.walk import reductions

_ONE = ((), 0)


class PlacedForms(CanonicalForms):
    """Canonical forms where the last coordinate of x is q and that of y is p, and reductions go by number."""

    def __init__(self, q: int, p: int | None, numbers: Mapping[Reduce, int], placed: PlacedValues) -> None:
        super().__init__()
        self._places, self._numbers, self._placed = {"x": q, "y": p}, numbers, placed

    def of(self, node: Node) -> list[Form]:
        values: dict[Node, list[Form]] = {}
        for part in self._placed.order(node):
            known = self._leaf(part)
            values[part] = known if known is not None else applied(part, self, [values[c] for c in part.children])
        return values[node]

    def _leaf(self, node: Node) -> list[Form] | None:
        number = self._placed.at(node, self._places["x"] or 1, self._places["y"])
        if number is not None:
            return [self.const(number)]
        if isinstance(node, Reduce):
            return [self.atom(("reduction", self._numbers[node], c)) for c in range(node.width)]
        if isinstance(node, Token):
            place = self._places[node.name]
            assert place is not None
            free: list[Form] = [self.atom((node.name, c)) for c in range(node.width - 1)]
            return [*free, self.const(Fraction(place))]
        return None

    def extremum(self, op: str, a: Form, b: Form) -> Form:
        if _constant(a) and _constant(b):
            return self.const((max if op == "max" else min)(a.get(_ONE, Fraction(0)), b.get(_ONE, Fraction(0))))
        return super().extremum(op, a, b)

    def function(self, fn: str, v: Form) -> Form:
        if fn == "abs" and _constant(v):
            return self.const(abs(v.get(_ONE, Fraction(0))))
        return super().function(fn, v)


def written_failures(written: object, f: Target) -> list[str]:
    """Why f as `written` is not shown to be the target f, of which the positions are the last coordinates."""
    try:
        if not isinstance(written, str):
            raise Unproved("it is not a formula")
        _prove(parse(written, f.d), f)
    except (Unproved, SumformerError, RecursionError) as why:
        return [f"constants: written is not shown to be the target at whole positions ({why})"]
    return []


def _prove(written: Node, f: Target) -> None:
    proved, n = f.expression, f.tokens.maximum
    ours, theirs = reductions(written), reductions(proved)
    if [(r.kind, r.width) for r in ours] != [(r.kind, r.width) for r in theirs] or written.width != proved.width:
        raise Unproved("its reductions are not those of the target")
    numbers: dict[Reduce, int] = {r: k for side in (ours, theirs) for k, r in enumerate(side)}
    if any(numbers[r] != k for side in (ours, theirs) for k, r in enumerate(side)):
        raise Unproved("its reductions stand in another order than the target's")
    placed = PlacedValues(n, f.d)
    for q in range(1, n + 1):
        for mine, its in zip(ours, theirs, strict=True):
            for p in range(1, n + 1):
                if not (p == q and mine.kind.endswith("_others")):
                    _same(mine.body, its.body, PlacedForms(q, p, numbers, placed), f"i = {q}, j = {p}")
        _same(written, proved, PlacedForms(q, None, numbers, placed), f"i = {q}")
    check_domains(written, proved, f.box, n, lambda q, p: PlacedForms(q, p, numbers, placed))


def _same(a: Node, b: Node, forms: PlacedForms, where: str) -> None:
    left, right = forms.of(a), forms.of(b)
    width = max(len(left), len(right))
    for one, other in zip(left * (width // len(left)), right * (width // len(right)), strict=True):
        if forms.sub(one, other):
            raise Unproved(f"they differ at {where}")


def _constant(v: Form) -> bool:
    keys: set[Hashable] = set(v)
    return keys <= {_ONE}
