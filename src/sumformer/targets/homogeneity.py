"""n as a symbol: sum(e) = n·mean(e), sum_others(e) = (n−1)·mean_others(e), so e has a degree in (n, n−1) or no meaning.

deg sum(e) = (1,0) + deg e, deg sum_others(e) = (0,1) + deg e; products add, quotients subtract, powers multiply; what
is added, joined or compared has equal degrees; a function (other than abs, norm, √ of even degree) needs degree (0,0).
"""

from __future__ import annotations

from sumformer.errors import TargetError
from sumformer.targets.node import Node
from sumformer.targets.printing import to_source
from sumformer.targets.tree import Binary, Cat, Const, Dot, Extremum, Norm2, Power, Reduce, Token, Unary
from sumformer.targets.walk import postorder, rebuild, transform

Degree = tuple[int, int]
_FLAT: Degree = (0, 0)
_OF_KIND: dict[str, Degree] = {"sum": (1, 0), "sum_others": (0, 1)}


def homogeneity(node: Node) -> Degree:
    """The degree of `node` in (n, n−1), or a `TargetError` that names the sub-expression where none exists."""
    degrees: dict[Node, Degree | None] = {}  # None: the value is 0, which has every degree
    for part in postorder(node):
        degrees[part] = _degree(part, [degrees[child] for child in part.children])
    return degrees[node] or _FLAT


def require_cancelling(node: Node) -> None:
    """Refuse a target whose value grows with n when every n is allowed."""
    degree = homogeneity(node)
    if degree != _FLAT:
        raise _needs_tokens(node, f"it grows as {_show(degree)}")


def without_counts(node: Node) -> Node:
    """sum → mean and sum_others → mean_others: the same function where n cancels, that is at degree (0,0)."""
    require_cancelling(node)

    def change(part: Node, children: tuple[Node, ...]) -> Node:
        if isinstance(part, Reduce) and part.kind in _OF_KIND:
            return Reduce("mean" if part.kind == "sum" else "mean_others", *children)
        return rebuild(part, children)

    return transform(node, change)


def cancelled(node: Node) -> Node:
    """The same function: of means where n cancels, else as it is."""
    try:
        return without_counts(node)
    except TargetError:
        return node


def _degree(node: Node, children: list[Degree | None]) -> Degree | None:
    first = children[0] if children else None
    match node:
        case Const(value):
            return None if value == 0 else _FLAT
        case Token():
            return _FLAT
        case Binary("*") | Dot():
            return _plus(children[0], children[1])
        case Binary("/"):
            return None if first is None else _plus(first, _times(children[1] or _FLAT, -1))
        case Binary() | Cat() | Extremum():
            return _equal(node, children)
        case Power(_, exponent):
            return _FLAT if exponent == 0 else None if first is None else _times(first, exponent)
        case Norm2():
            return None if first is None else _times(first, 2)
        case Reduce(kind):
            return None if first is None else _plus(first, _OF_KIND.get(kind, _FLAT))
        case Unary("abs"):
            return first
        case Unary("sqrt") if first is not None and not first[0] % 2 and not first[1] % 2:
            return first[0] // 2, first[1] // 2
        case Unary(fn):
            if first not in (None, _FLAT):
                raise _needs_tokens(node.children[0], f"inside {fn}(…) it grows as {_show(first or _FLAT)}")
            return _FLAT
    return first  # Neg, Slice, Norm, Total


def _equal(node: Node, children: list[Degree | None]) -> Degree | None:
    known = [(child, degree) for child, degree in zip(node.children, children, strict=True) if degree is not None]
    for child, degree in known:
        if degree != known[0][1]:
            both = f"'{_short(known[0][0])}' grows as {_show(known[0][1])}, '{_short(child)}' as {_show(degree)}"
            raise _needs_tokens(node, both)
    return known[0][1] if known else None


def _plus(a: Degree | None, b: Degree | None) -> Degree | None:
    return None if a is None or b is None else (a[0] + b[0], a[1] + b[1])


def _times(a: Degree, k: int) -> Degree:
    return a[0] * k, a[1] * k


def _show(degree: Degree) -> str:
    factors = [f"{base}^{k}" if k != 1 else base for base, k in zip(("n", "(n-1)"), degree, strict=True) if k]
    return "·".join(factors) or "n^0"


def _short(node: Node) -> str:
    text = to_source(node)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _needs_tokens(node: Node, why: str) -> TargetError:
    advice = "write mean(…) instead of sum(…), or say how many tokens there are: --tokens N or --tokens ..N"
    return TargetError(f"needs tokens: n does not cancel in '{_short(node)}': {why}; {advice}")
