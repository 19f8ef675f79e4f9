"""Expressions as sums of monomials over ℚ: equal canonical forms are equal functions wherever both are defined.

A monomial is Π atomᵏ · exp(E): atoms are x_c, y_c, coordinates of reductions, function values fn(P), and inverses of
sums of several monomials; exp(P)·exp(Q) = exp(P + Q), so all exponentials of a monomial are one exponent E. Atoms and
forms are numbered as they appear; equal ones get equal numbers. |P|² is P², ‖P‖² is Σ P_c²: both are there for all P.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import reduce

from sumformer.certificates.checker.tree_values import components
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.node import Node
from sumformer.targets.tree import Reduce, Token

Monomial = tuple[tuple[tuple[int, int], ...], int]  # ((atom, power), …) sorted, number of the exponent
Form = dict[Monomial, Fraction]
MAX_TERMS = 20_000
MAX_WORK = 2_000_000
_ONE: Monomial = ((), 0)


class CanonicalForms:
    """The arithmetic of canonical forms, for `tree_values.components`."""

    def __init__(self) -> None:
        self._work = 0
        self._atoms: dict[Hashable, int] = {}
        self._squares: dict[int, Form] = {}  # of absolute values and norms
        self._exponents: list[Form] = [{}]
        self._exponent_numbers: dict[frozenset[tuple[Monomial, Fraction]], int] = {frozenset(): 0}

    def of(self, node: Node) -> list[Form]:
        """The coordinates of `node`, y free or not."""
        return components(node, self, self._leaf)

    def _leaf(self, node: Node) -> list[Form] | None:
        if isinstance(node, Token | Reduce):
            name: Hashable = node.name if isinstance(node, Token) else node
            return [self.atom((name, c)) for c in range(node.width)]
        return None

    def atom(self, key: Hashable, power: int = 1) -> Form:
        number = self._atoms.setdefault(key, len(self._atoms))
        return {(((number, power),), 0): Fraction(1)}

    def const(self, value: Fraction) -> Form:
        return {_ONE: value} if value else {}

    def add(self, a: Form, b: Form) -> Form:
        out = dict(a)
        for monomial, coefficient in b.items():
            out[monomial] = out.get(monomial, Fraction(0)) + coefficient
        return _clean(out)

    def neg(self, a: Form) -> Form:
        return {monomial: -coefficient for monomial, coefficient in a.items()}

    def sub(self, a: Form, b: Form) -> Form:
        return self.add(a, self.neg(b))

    def mul(self, a: Form, b: Form) -> Form:
        self._work += len(a) * len(b)
        if self._work > MAX_WORK:
            raise Unproved(f"the expansion takes more than {MAX_WORK} products of terms")
        out: Form = {}
        for m, p in a.items():
            for n, q in b.items():
                for monomial, coefficient in self._squared(self._times(m, n)).items():
                    out[monomial] = out.get(monomial, Fraction(0)) + p * q * coefficient
        return _clean(out)

    def _squared(self, monomial: Monomial) -> Form:
        """The squares among its factors, where they are known, written out."""
        for atom, power in monomial[0]:
            if power > 1 and atom in self._squares:
                rest = tuple((a, k if a != atom else power % 2) for a, k in monomial[0] if a != atom or power % 2)
                return self.mul({(rest, monomial[1]): Fraction(1)}, self.power(self._squares[atom], power // 2))
        return {monomial: Fraction(1)}

    def _times(self, m: Monomial, n: Monomial) -> Monomial:
        powers = dict(m[0])
        for atom, power in n[0]:
            powers[atom] = powers.get(atom, 0) + power
        kept = tuple(sorted((atom, power) for atom, power in powers.items() if power))
        exponent = m[1] or n[1]
        if m[1] and n[1]:
            exponent = self._exponent(self.add(self._exponents[m[1]], self._exponents[n[1]]))
        return kept, exponent

    def _exponent(self, form: Form) -> int:
        key = frozenset(form.items())
        if key not in self._exponent_numbers:
            self._exponent_numbers[key] = len(self._exponents)
            self._exponents.append(form)
        return self._exponent_numbers[key]

    def inverse(self, a: Form) -> Form:
        """1/a: of one monomial exactly, of several as an atom whose leading coefficient is 1."""
        if not a:
            raise Unproved("division by 0")
        if len(a) == 1:
            ((powers, exponent), coefficient) = next(iter(a.items()))
            turned = tuple((atom, -power) for atom, power in powers)
            opposite = self._exponent(self.neg(self._exponents[exponent]))
            return {(turned, opposite): 1 / coefficient}
        scale = a[min(a)]
        key = frozenset((monomial, coefficient / scale) for monomial, coefficient in a.items())
        return {m: c / scale for m, c in self.atom(("sum", key), -1).items()}

    def div(self, a: Form, b: Form) -> Form:
        return self.mul(a, self.inverse(b))

    def power(self, v: Form, k: int) -> Form:
        if k < 0:
            inverse = self.inverse(v)
            return self.power(inverse, -k)
        out = self.const(Fraction(1))
        for _ in range(k):
            out = self.mul(out, v)
        return out

    def total(self, values: list[Form]) -> Form:
        return reduce(self.add, values, {})

    def norm(self, values: list[Form]) -> Form:
        return self._rooted(("norm", tuple(frozenset(v.items()) for v in values)), values)

    def _rooted(self, key: Hashable, values: list[Form]) -> Form:
        """An atom whose square is the sum of those of `values`."""
        form = self.atom(key)
        number = self._atoms[key]
        if number not in self._squares:
            self._squares[number] = self.total([self.mul(v, v) for v in values])
        return form

    def extremum(self, op: str, a: Form, b: Form) -> Form:
        return self.atom((op, frozenset(a.items()), frozenset(b.items())))

    def function(self, fn: str, v: Form) -> Form:
        if fn == "exp":
            return {((), self._exponent(v)): Fraction(1)}
        key = (fn, frozenset(v.items()))
        return self._rooted(key, [v]) if fn == "abs" else self.atom(key)

    def evaluator(self) -> Callable[[int], Hashable]:
        """The key of an atom from its number."""
        keys = list(self._atoms)
        return keys.__getitem__


def _clean(form: Form) -> Form:
    out = {monomial: coefficient for monomial, coefficient in form.items() if coefficient}
    if len(out) > MAX_TERMS:
        raise Unproved(f"an expansion has more than {MAX_TERMS} terms")
    return out
