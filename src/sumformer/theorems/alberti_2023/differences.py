"""K(x, y) = k(x − y): sums of constants and of multiples of x_c and y_c that depend on x − y alone."""

from __future__ import annotations

from fractions import Fraction

from sumformer.targets import Binary, Const, Neg, Node, Slice, Token, postorder, substitute
from sumformer.targets.tree import is_short

Form = dict[Node | None, Fraction]
"""What each x_c and y_c is multiplied by; at None the constant."""


def as_difference(kernel: Node) -> Node | None:
    """k, its argument named x; None where x or y stand otherwise."""
    known: dict[Node, Form | None] = {}
    mapping: dict[Node, Node] = {}
    for part in postorder(kernel):
        known[part] = form = _affine(part, known)
        if form is not None and isinstance(part, Binary) and part.op in "+-":
            found = _difference(form)
            mapping |= {} if found is None else {part: found}
    if not mapping:
        return None
    marked = substitute(kernel, {part: Const(Fraction(1)) for part in mapping})
    return None if marked.free else substitute(kernel, mapping)


def _affine(part: Node, known: dict[Node, Form | None]) -> Form | None:
    """None of what is not seen to be affine."""
    match part:
        case Const(value):
            return {None: value}
        case Slice(Token()) if part.width == 1:
            return {part: Fraction(1)}
        case Neg(arg):
            return _times(known[arg], Fraction(-1))
        case Binary(op, left, right):
            a, b = known[left], known[right]
            if a is None or b is None:
                return None
            if op in "+-":
                sign = 1 if op == "+" else -1
                return {place: a.get(place, Fraction(0)) + sign * b.get(place, Fraction(0)) for place in {**a, **b}}
            if b.keys() <= {None}:
                factor = b.get(None, Fraction(0))
                return _times(a, factor) if op == "*" else _times(a, 1 / factor) if factor else None
            return _times(b, a[None]) if op == "*" and a.keys() == {None} else None
    return None


def _times(form: Form | None, factor: Fraction) -> Form | None:
    return None if form is None else {place: factor * value for place, value in form.items()}


def _difference(form: Form) -> Node | None:
    """constant + Σ a_c x_c for constant + Σ a_c (x_c − y_c), where that is so and not constant."""
    slopes: dict[tuple[str, int], tuple[Node, Fraction]] = {}
    for place, a in form.items():
        if isinstance(place, Slice) and isinstance(place.arg, Token) and a:
            slopes[place.arg.name, place.start] = place, a
    total: Node | None = None
    for (name, c), (x, a) in sorted(slopes.items(), key=lambda item: item[0]):
        opposite = slopes.get(("y" if name == "x" else "x", c))
        if opposite is None or opposite[1] != -a or not is_short(a):
            return None
        if name == "x":
            term = x if a == 1 else Neg(x) if a == -1 else Binary("*", Const(a), x)
            total = term if total is None else Binary("+", total, term)
    constant = form.get(None, Fraction(0))
    if total is None or not constant:
        return total
    return Binary("+" if constant > 0 else "-", total, Const(abs(constant))) if is_short(constant) else None
