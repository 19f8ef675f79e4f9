"""An expression over x and reductions as values of a program: + and − are free, × a product, g(·) one hidden layer.

A part that depends on one number only (a coordinate, a reduction) is one function of it, however it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from sumformer.algebra.interval_operations import IntervalOperations
from sumformer.errors import DomainError, RefusedError
from sumformer.gadgets.chebyshev import X
from sumformer.gadgets.elementary import RECIPROCAL
from sumformer.gadgets.function import left_domain
from sumformer.targets import (
    Binary,
    Cat,
    Const,
    Environment,
    Extremum,
    Neg,
    Node,
    Norm,
    Power,
    Reduce,
    Slice,
    Token,
    Unary,
    evaluate,
    postorder,
    substitute,
    to_source,
)
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.compile.functional import Functional, total
from sumformer.theorems.alberti_2023.compile.program import Program, as_node, constant


class TreeCompiler:
    """`reduction(node, component)` gives the value of a reduction; `quotients` may know a quotient better."""

    def __init__(
        self,
        program: Program,
        box: Box,
        reduction: Callable[[Reduce, int], Functional],
        quotient: Callable[[Node], Functional | None] = lambda node: None,
    ) -> None:
        self.program, self.box, self.reduction, self.quotient = program, box, reduction, quotient
        self._done: dict[Node, Functional] = {}

    def compile(self, node: Node) -> Functional:
        """The value of a component expression (width 1)."""
        if node not in self._done:
            self._done[node] = self._compile(node)
        return self._done[node]

    def _compile(self, node: Node) -> Functional:
        known = self.quotient(node)
        if known is not None:
            return known
        atom = self._atom(node)
        if atom is not None:
            return atom
        if not _atoms(node):
            return self._constant(node)
        alone = self._alone(node)
        if alone is not None:
            return alone
        match node:
            case Neg(arg):
                return -self.compile(arg)
            case Binary("+", left, right):
                return self.compile(left) + self.compile(right)
            case Binary("-", left, right):
                return self.compile(left) + (-self.compile(right))
            case Binary("*", left, right):
                return self.program.product(self.compile(left), self.compile(right))
            case Binary("/", left, right):
                return self.divide(self.compile(left), right)
            case Power(arg, k):
                return self._power(arg, k)
            case Unary("abs", arg):
                return self._positive(self.compile(arg)) + self._positive(-self.compile(arg))
            case Unary("sqrt", arg):
                return self.program.root(self.compile(arg), "sqrt")
            case Unary(fn, arg):
                return self._function(Unary(fn, X), arg, fn)
            case Extremum(op, left, right):
                a, b = self.compile(left), self.compile(right)
                return b + self._positive(a + (-b)) if op == "max" else b + (-self._positive(b + (-a)))
            case Norm(Cat((arg,))):
                return self.compile(Unary("abs", arg))
            case Norm(Cat(args)):
                squares = [self.program.square(self.compile(a)) for a in args]
                positive = self.program.sum(total(squares), (0.0, float("inf")), {"norm2": True})
                return self.program.root(positive, "norm")
        raise RefusedError(f"{to_source(node)} has no gadget", [])

    def divide(self, top: Functional, bottom: Node) -> Functional:
        """a/b = a · (1/b), the reciprocal one function of what b is a function of."""
        return self.program.product(top, self.compile(bottom**-1))

    def _power(self, arg: Node, k: int) -> Functional:
        if k < 0:
            return self._function(RECIPROCAL if k == -1 else X**k, arg, f"power {k}")
        base = self.compile(arg)
        if k > 8 and self.program.prefer == "depth":
            return self.program.function(X**k, base, f"power {k}")
        out: Functional | None = None
        while k:
            if k & 1:
                out = base if out is None else self.program.product(out, base)
            k >>= 1
            if k:
                base = self.program.square(base)
        return constant(1) if out is None else out

    def _function(self, g: Node, arg: Node, name: str) -> Functional:
        """g(arg), refused in the words of the target."""
        t = self.compile(arg)
        try:
            return self.program.function(g, t, name)
        except DomainError:
            raise left_domain(g, *self.program.range(t), to_source(arg)) from None

    def _positive(self, f: Functional) -> Functional:
        """max(t, 0): a single ReLU, exactly."""
        return self.program.positive(f)

    def _constant(self, node: Node) -> Functional:
        value = evaluate(node, IntervalOperations(), Environment())
        lo, hi = float(value.lo.min()), float(value.hi.max())
        if lo == hi:
            return constant(lo)
        middle = (lo + hi) / 2
        return self.program.sum(constant(middle), weight_error=hi - lo, because={"constant": to_source(node)})

    # ---- what depends on one number only

    def _atom(self, node: Node) -> Functional | None:
        match node:
            case Const(value):
                return constant(value) if abs(value) < 10**300 else None
            case Slice(Token(), c):
                radius, centre = constant(self.box.radius[c]), constant(self.box.centre[c])
                return self.program.product(radius, self.program.input(c)) + centre
            case Token() if node.width == 1:
                return self.compile(Slice(node, 0, 1))
            case Reduce() if node.width == 1:
                return self.reduction(node, 0)
            case Slice(Reduce() as inner, c):
                return self.reduction(inner, c)
        return None

    def _alone(self, node: Node) -> Functional | None:
        """One function of one number, unless it is a polynomial for which products are cheaper."""
        atoms = _atoms(node)
        if len(atoms) != 1 or not self.smooth(node) or _affine(node):
            return None
        if self.program.prefer != "depth" and _polynomial(node):
            return None
        (atom,) = atoms
        if isinstance(atom, Slice) and isinstance(atom.arg, Token):
            c = atom.start
            g, t = self.of_coordinate(node, c), self.program.input(c)
            return None if self.program.steep(g, t) else self.program.function(g, t, _short(node))
        g = substitute(node, {atom: X})
        return None if self.program.steep(g, self.compile(atom)) else self._function(g, atom, _short(node))

    def of_coordinate(self, node: Node, c: int) -> Node:
        """node, which depends on x_c alone, as a function of u_c: x_c = centre + radius·u_c, exactly."""
        inside = as_node(self.box.centre[c]) + as_node(self.box.radius[c]) * X
        return substitute(node, dict.fromkeys(_atoms(node), inside))

    @staticmethod
    def smooth(node: Node) -> bool:
        """No abs, min, max or norm outside reductions."""
        parts = postorder(node, into_reductions=False)
        return not any(isinstance(p, Extremum | Norm) or (isinstance(p, Unary) and p.fn == "abs") for p in parts)


def _short(node: Node) -> str:
    text = to_source(node)
    return text if len(text) <= 24 else ""


def _atoms(node: Node) -> set[Node]:
    """Coordinates x[c] and components of reductions."""
    match node:
        case Slice(Token() | Reduce()):
            return {node}
        case Reduce() | Token():
            return {node}
    return reduce(lambda a, b: a | b, (_atoms(child) for child in node.children), set[Node]())


def _polynomial(node: Node) -> bool:
    match node:
        case Slice(Token() | Reduce()) | Reduce() | Token() | Const():
            return True
        case Binary("/", left, right):
            return isinstance(right, Const) and _polynomial(left)
        case Power(arg, k):
            return k >= 0 and _polynomial(arg)
        case Neg() | Binary():
            return all(_polynomial(child) for child in node.children)
    return False


def _affine(node: Node) -> bool:
    match node:
        case Slice(Token() | Reduce()) | Reduce() | Token() | Const():
            return True
        case Neg(arg):
            return _affine(arg)
        case Binary("+" | "-", left, right):
            return _affine(left) and _affine(right)
        case Binary("*", left, right):
            return (isinstance(left, Const) and _affine(right)) or (isinstance(right, Const) and _affine(left))
        case Binary("/", left, right):
            return isinstance(right, Const) and _affine(left)
    return False
