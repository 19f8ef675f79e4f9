"""k(i, j) = Σ_p k(i, p) Λ(j − p) = Σ_{q,p} k(q, p) Λ(i − q) Λ(j − p) at whole positions, Λ(t) = max(0, 1 − |t|).

Positions are the whole numbers 1 … n, where both identities are exact: a factor of i and j alone, however rough (a mask
or a distance |i − j|), becomes a sum of factors of i alone and of j alone, and nothing of it is left to interpolate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import reduce

from sumformer.errors import TargetError
from sumformer.targets import Binary, Const, Node, Reduce, Slice, Token, Unary, postorder, rebuild, substitute
from sumformer.targets.arithmetic import combine
from sumformer.targets.parser import MAX_NODES
from sumformer.targets.target import Target
from sumformer.targets.tree import BinaryOp, Extremum

Table = Callable[[Node, bool], Node]  # k(i, j), whether i ≠ j ↦ its table


def tabulated(f: Target) -> Iterator[Target]:
    """The targets equal to f at whole positions with its factors of i and j tabulated over j, then over i and j."""
    n = f.tokens.maximum
    i, j = (Slice(Token(name, f.d), f.d - 1, f.d) for name in ("x", "y"))

    def over_j(k: Node, others: bool) -> Node:
        return _sum([_product(_at(k, j, p), _hat(j, p)) for p in range(1, n + 1)])

    def over_both(k: Node, others: bool) -> Node:
        rows = []
        for q in range(1, n + 1):
            places = [p for p in range(1, n + 1) if not (others and p == q)]
            inner = _sum([_product(_at(_at(k, j, p), i, q), _hat(j, p)) for p in places])
            rows.append(_product(_hat(i, q), inner))
        return _sum(rows)

    for table in (over_j, over_both):
        try:
            tree = _replace(f.expression, f.d, table)
        except TargetError:  # a value that does not exist, or a tree that is too large
            continue
        if tree.size <= MAX_NODES and tree != f.expression:
            yield Target(tree, f.d, f.box, f.tokens, positioned=True)


def _replace(node: Node, d: int, table: Table) -> Node:
    """Every largest factor of i and j alone, inside a reduction, becomes its table."""
    new: dict[Node, Node] = {}
    for part in postorder(node):  # bodies before the reductions over them
        if isinstance(part, Reduce):
            body = _in_body(substitute(part.body, dict(new)), d, table, part.kind.endswith("_others"))
            new[part] = Reduce(part.kind, body)
    return substitute(node, new)


def _in_body(node: Node, d: int, table: Table, others: bool) -> Node:
    placed = _of_positions(node, d)

    def factors(part: Node) -> tuple[Node | None, Node | None]:
        """k(i, j) and the rest, rewritten, of a product k·rest; None is 1."""
        if part in placed:
            return part, None
        if not (isinstance(part, Binary) and part.op in "*/"):
            return None, inside(part)
        (k, a), (m, b) = factors(part.left), factors(part.right)
        return _joined(part.op, k, m), _joined(part.op, a, b)

    def inside(part: Node) -> Node:
        if not part.children or isinstance(part, Reduce):
            return part
        return rebuild(part, [rewrite(child) for child in part.children])

    def rewrite(part: Node) -> Node:
        k, rest = factors(part)
        if k is None or not {"x", "y"} <= k.free:  # nothing in which i and j meet
            return part if part in placed else inside(part)
        return table(k, others) if rest is None else _product(table(k, others), rest)

    return rewrite(node)


def _of_positions(node: Node, d: int) -> frozenset[Node]:
    """The sub-trees whose value depends on i and j alone."""
    found: set[Node] = set()
    for part in postorder(node, into_reductions=False):
        if isinstance(part, Slice) and isinstance(part.arg, Token):
            alone = (part.start, part.stop) == (d - 1, d)
        else:
            alone = not isinstance(part, Token | Reduce) and all(child in found for child in part.children)
        if alone:
            found.add(part)
    return frozenset(found)


def _at(k: Node, place: Node, p: int) -> Node:
    return substitute(k, {place: Const(Fraction(p))})


def _hat(place: Node, p: int) -> Node:
    """Λ(place − p): 1 at p, 0 at every other whole number."""
    gap = Unary("abs", Binary("-", place, Const(Fraction(p))))
    return Extremum("max", Const(Fraction(0)), Binary("-", Const(Fraction(1)), gap))


def _joined(op: BinaryOp, a: Node | None, b: Node | None) -> Node | None:
    """a·b or a/b, where None is 1."""
    if b is None or (a is None and op == "*"):
        return a if b is None else b
    return combine(op, Const(Fraction(1)) if a is None else a, b)


def _product(a: Node, b: Node) -> Node:
    return combine("*", a, b)


def _sum(terms: list[Node]) -> Node:
    return reduce(lambda a, b: combine("+", a, b), terms) if terms else Const(Fraction(0))
