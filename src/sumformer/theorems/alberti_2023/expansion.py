"""Expand a component expression into Σ c · Π atomᵉ, exactly, with x and y centred: x_c = centre_c + radius_c·u_c.

Atoms are the centred coordinates u_c (own) and v_c (other), and whatever is not polynomial: function values,
denominators, reductions. exp(P + Q) becomes exp(P)·exp(Q), where the summands are grouped so that what depends on x
alone, on y alone, or on other coordinates stands apart. Two groupings are offered:
  split  the exponent is expanded in u, v; pure parts leave the kernel:  e^{−4(x−y)²} = e^{−4u²} e^{8uv} e^{−4v²}
  joint  the exponent's own summands stay whole, apart by coordinates:   e^{−4‖x−y‖²} = Π_c e^{−4(x_c−y_c)²}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Literal

from sumformer.errors import RefusedError
from sumformer.targets import Binary, Const, Neg, Node, Power, Reduce, Slice, Token, Unary, to_source
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.components import coordinates

Grouping = Literal["split", "joint"]
MAX_TERMS = 4000


@dataclass(frozen=True)
class Centred:
    """u_c (name x) or v_c (name y) ∈ [−1, 1]."""

    name: Literal["x", "y"]
    index: int


Atom = Centred | Node
Monomial = frozenset[tuple[Atom, int]]
Expansion = dict[Monomial, Fraction]
ONE: Monomial = frozenset()


@dataclass(frozen=True)
class Expander:
    """Expansion over a box, with one grouping of exponents."""

    box: Box
    grouping: Grouping

    def expand(self, node: Node) -> Expansion:
        """node (width 1) = Σ coefficient · Π atomᵉ."""
        match node:
            case Const(value):
                return {ONE: value} if value else {}
            case Slice(Token(name), start):
                return {
                    ONE: self.box.centre[start],
                    frozenset({(Centred(name, start), 1)}): self.box.radius[start],
                }
            case Neg(arg):
                return scale(self.expand(arg), Fraction(-1))
            case Binary("+", left, right):
                return add(self.expand(left), self.expand(right))
            case Binary("-", left, right):
                return add(self.expand(left), scale(self.expand(right), Fraction(-1)))
            case Binary("*", left, right):
                return multiply(self.expand(left), self.expand(right))
            case Binary("/", left, right):
                return multiply(self.expand(left), self._power(right, -1))
            case Power(arg, exponent):
                return self._power(arg, exponent)
            case Unary("exp", arg):
                return self._exponential(arg)
            case _:
                return {frozenset({(node, 1)}): Fraction(1)}

    def _power(self, base: Node, exponent: int) -> Expansion:
        expansion = self.expand(base)
        if len(expansion) == 1:
            ((monomial, coefficient),) = expansion.items()
            if coefficient or exponent >= 0:
                return {frozenset((a, e * exponent) for a, e in monomial if exponent): coefficient**exponent}
        if exponent < 0:
            return {frozenset({(base, exponent)}): Fraction(1)}
        return reduce(multiply, [expansion] * exponent, {ONE: Fraction(1)})

    def _exponential(self, exponent: Node) -> Expansion:
        if self.grouping == "split":
            summands = [self.node({m: c}) for m, c in self.expand(exponent).items()]
        else:
            summands = list(additive_terms(exponent))
        groups = _by_coordinates(summands) if self.grouping == "joint" else _by_side(summands)
        result: Expansion = {ONE: Fraction(1)}
        for group in groups:
            atom: Atom = Unary("exp", reduce(lambda a, b: a + b, group))
            result = multiply(result, {frozenset({(atom, 1)}): Fraction(1)})
        return result

    def node(self, expansion: Expansion) -> Node:
        """The expansion as a tree; u_c is written (x[c] − centre)/radius with the radius drawn into the coefficient."""
        ordered = sorted(expansion.items(), key=lambda item: sorted((atom_key(a), e) for a, e in item[0]))
        parts = [self._monomial(m, c) for m, c in ordered]
        return reduce(lambda a, b: a + b, parts) if parts else Const(Fraction(0))

    def _monomial(self, monomial: Monomial, coefficient: Fraction) -> Node:
        factors: list[Node] = []
        for atom, e in sorted(monomial, key=lambda pair: atom_key(pair[0])):
            if isinstance(atom, Centred):
                token = Slice(Token(atom.name, len(self.box.centre)), atom.index, atom.index + 1)
                centre = self.box.centre[atom.index]
                coefficient /= self.box.radius[atom.index] ** e
                base = token - centre if centre else token
            else:
                base = atom
            factors.append(base**e if e != 1 else base)
        if coefficient == 1 and factors:
            return reduce(lambda a, b: a * b, factors)
        first: Node = Const(coefficient)
        return reduce(lambda a, b: a * b, factors, first)


def add(a: Expansion, b: Expansion) -> Expansion:
    """a + b."""
    out = dict(a)
    for monomial, coefficient in b.items():
        total = out.get(monomial, Fraction(0)) + coefficient
        if total:
            out[monomial] = total
        else:
            out.pop(monomial, None)
    return out


def scale(a: Expansion, factor: Fraction) -> Expansion:
    """factor · a."""
    return {m: c * factor for m, c in a.items()} if factor else {}


def multiply(a: Expansion, b: Expansion) -> Expansion:
    """a · b, exponents of equal atoms added; refuses what would explode."""
    if len(a) * len(b) > 50 * MAX_TERMS:
        raise _too_many(f"more than {50 * MAX_TERMS} products")
    out: Expansion = {}
    for m1, c1 in a.items():
        for m2, c2 in b.items():
            powers = dict(m1)
            for atom, e in m2:
                powers[atom] = powers.get(atom, 0) + e
            monomial = frozenset((atom, e) for atom, e in powers.items() if e)
            out[monomial] = out.get(monomial, Fraction(0)) + c1 * c2
    out = {m: c for m, c in out.items() if c}
    if len(out) > MAX_TERMS:
        raise _too_many(f"{len(out)} terms, at most {MAX_TERMS}")
    return out


def _too_many(found: str) -> RefusedError:
    advice = "route cells does not expand it, nor do symmetric and grid for one number of tokens"
    return RefusedError("the expression expands into too many terms", [found, advice])


def additive_terms(node: Node) -> Iterable[Node]:
    """The summands of `node`, constant factors distributed, everything else kept as written."""
    match node:
        case Binary("+", left, right):
            yield from additive_terms(left)
            yield from additive_terms(right)
        case Binary("-", left, right):
            yield from additive_terms(left)
            yield from (-term for term in additive_terms(right))
        case Neg(arg):
            yield from (-term for term in additive_terms(arg))
        case Binary("*", Const() as factor, right):
            yield from (factor * term for term in additive_terms(right))
        case Binary("*", left, Const() as factor):
            yield from (term * factor for term in additive_terms(left))
        case Binary("/", left, Const() as factor):
            yield from (term / factor for term in additive_terms(left))
        case _:
            yield node


def _by_side(summands: list[Node]) -> list[list[Node]]:
    """x-only together, y-only together, mixed ones by connected coordinates."""
    own = [s for s in summands if "y" not in s.free]
    other = [s for s in summands if s.free == {"y"}]
    mixed = [s for s in summands if {"x", "y"} <= s.free]
    return [group for group in (own, other, *connected(mixed, coordinates)) if group]


def _by_coordinates(summands: list[Node]) -> list[list[Node]]:
    """Connected by coordinates as soon as a mixed summand is among them; pure groups fall apart by side."""
    out: list[list[Node]] = []
    for group in connected(summands, coordinates):
        if any({"x", "y"} <= s.free for s in group):
            out.append(group)
        else:
            out += _by_side(group)
    return out


def connected(items: list[Node], labels: Callable[[Node], frozenset[int]]) -> list[list[Node]]:
    """Classes of items that share a label, directly or through others; items without labels are one class."""
    classes: list[tuple[set[int], list[Node]]] = []
    for item in items:
        mine, members = set(labels(item)), [item]
        apart = []
        for seen, group in classes:
            if seen & mine or (not seen and not mine):
                mine, members = mine | seen, group + members
            else:
                apart.append((seen, group))
        classes = [*apart, (mine, members)]
    return [group for _, group in classes]


def atom_key(atom: Atom) -> str:
    """A fixed order of atoms, so that equal targets give equal networks."""
    return f"{atom.name}[{atom.index}]" if isinstance(atom, Centred) else to_source(atom)


def is_own(atom: Atom) -> bool:
    """A value of the own token: u_c, functions of x, constants, reductions."""
    return atom.name == "x" if isinstance(atom, Centred) else "y" not in atom.free


def is_other(atom: Atom) -> bool:
    """A value of the other token alone."""
    return atom.name == "y" if isinstance(atom, Centred) else atom.free == {"y"}


def is_polynomial_atom(atom: Atom) -> bool:
    """u_c, v_c and reductions: what a polynomial in sums is made of."""
    return isinstance(atom, Centred | Reduce) or (isinstance(atom, Slice) and isinstance(atom.arg, Reduce))
