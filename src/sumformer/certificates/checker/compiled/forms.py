"""(Σ c · monomial, error, range): |true value − Σ| ≤ error, through + − × ÷ and the functions of the language.

Rules beyond those of polynomials: e^P e^Q = e^{P+Q}, e^{log A − log B} = A/B, (k D + R)/D = k + R/D,
max(a, b) = b + (a − b)⁺, t⁺ = t + (−t)⁺. A function value is an atom; one whose argument is near that of a known atom
is taken for it, and errs by slope × distance. The atom of a root is √max(A, 0), for any sum A of monomials. A⁺ of an A
whose sign is known is A, or 0.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import reduce

from flint import fmpq

from sumformer.certificates.checker.compiled.atoms import UP, Atom, Atoms, Monomial, Terms, add, lead, rational, scale
from sumformer.certificates.checker.compiled.element import FLOOR, Element, between, moderate, widened
from sumformer.certificates.checker.compiled.root_modulus import root_moves
from sumformer.certificates.checker.compiled.slope import slope
from sumformer.certificates.checker.interval import Interval, IntervalOperations
from sumformer.certificates.checker.verification import Unproved

INTERVALS = IntervalOperations()
ZERO = fmpq(0)
SHORT = 64  # terms, which are then also looked at one by one


class Forms:
    """The arithmetic of elements, for `tree_values.components`."""

    def __init__(self, d: int) -> None:
        self.atoms = Atoms(d)
        self._logs: dict[int, Element] = {}
        self._inverses: dict[int, Terms] = {}
        self._ranges: dict[Monomial, Interval] = {}  # of named numbers
        self._signs: dict[int, int] = {}  # of the arguments of (·)⁺, where they are known

    # ---- leaves

    def const(self, value: Fraction | float) -> Element:
        q = rational(value)
        return Element({self.atoms.one: q} if q else {}, 0.0, INTERVALS.const(Fraction(value)))

    def chebyshev(self, alpha: tuple[int, ...]) -> Element:
        """T_α(u)."""
        return Element({(alpha, (), 0): fmpq(1)}, 0.0, between(-1.0, 1.0) if any(alpha) else between(1.0, 1.0))

    def named(self, name: object, range: Interval) -> Element:
        """A number known by name."""
        size, least = float(range.magnitude), float(range.mignitude)
        out = self._atom(self.atoms.number(Atom(name, {}, size, least, False)), 0.0, range)
        self._ranges.setdefault(next(iter(out.terms)), range)
        return out

    def mean(self, e: Element) -> Element:
        """Over the tokens, of a function of one token: monomial by monomial."""
        terms: Terms = {}
        for m, c in e.terms.items():
            key = m
            if m != self.atoms.one:
                if not self.atoms.own({m: c}):
                    raise Unproved("identity: a mean is taken of what depends on other tokens")
                number = self.atoms.number(Atom("mean", {m: fmpq(1)}, self.atoms.size(m), 0.0, False))
                key = (self.atoms.zero, ((number, 1),), 0)
            terms[key] = terms.get(key, ZERO) + c
        return Element(terms, e.error, e.range)

    def _atom(self, number: int, error: float, range: Interval) -> Element:
        return Element({(self.atoms.zero, ((number, 1),), 0): fmpq(1)}, error, range)

    # ---- arithmetic

    def add(self, a: Element, b: Element) -> Element:
        return Element(add(a.terms, b.terms), (a.error + b.error) * UP, INTERVALS.add(a.range, b.range))

    def neg(self, a: Element) -> Element:
        return Element(scale(a.terms, fmpq(-1)), a.error, INTERVALS.neg(a.range))

    def sub(self, a: Element, b: Element) -> Element:
        return self.add(a, self.neg(b))

    def scaled(self, a: Element, factor: float | Fraction) -> Element:
        by = INTERVALS.const(Fraction(moderate(factor)))
        return Element(scale(a.terms, rational(factor)), abs(float(factor)) * a.error * UP, INTERVALS.mul(a.range, by))

    def mul(self, a: Element, b: Element) -> Element:
        error = 0.0
        if a.error or b.error:
            error = (a.size * b.error + b.size * a.error + a.error * b.error) * UP
            error = math.inf if math.isnan(error) else error
        terms = self._reduced(self.atoms.multiply(a.terms, b.terms))
        return Element(terms, error, INTERVALS.mul(a.range, b.range))

    def _reduced(self, terms: Terms) -> Terms:
        """(k D + R)/D = k + R/D with the leading monomial of D."""
        for number, D in self._inverses.items():
            held = {m: c for m, c in terms.items() if (number, -1) in m[1]} if len(self._inverses) else {}
            if not held:
                continue
            key = lead(D)[0]
            rest = tuple(sorted((*key[1], (number, -1))))
            k = held.get((key[0], rest, key[2]))
            if k is not None:
                below = self.atoms.multiply(D, {(self.atoms.zero, ((number, -1),), 0): k})
                terms = add(add(terms, scale(below, fmpq(-1))), {self.atoms.one: k})
        return terms

    def div(self, a: Element, b: Element) -> Element:
        return self.mul(a, self.inverse(b))

    def inverse(self, b: Element) -> Element:
        """1/b: what all monomials share is inverted exactly, the rest D is an atom with leading coefficient 1."""
        if not b.terms:
            raise Unproved("division by 0")
        range = INTERVALS.div(INTERVALS.const(Fraction(1)), b.range)
        shared, exponent = self._content(b.terms)
        turned = tuple((atom, -power) for atom, power in shared)
        opposite = self.atoms.exponent(scale(self.atoms.exponents[exponent].terms, fmpq(-1)))[0]
        D = self.atoms.multiply(b.terms, {(self.atoms.zero, turned, opposite): fmpq(1)})
        factor = 1 / lead(D)[1]
        D = scale(D, factor)
        outside: Terms = {(self.atoms.zero, turned, opposite): factor}
        if D.keys() == {self.atoms.one}:
            moderate(1 / factor)
            error = max(b.error * float(range.magnitude) * float(range.magnitude) * 2, FLOOR) if b.error else 0.0
            self._not_lost(b.error, b)
            if len(shared) == 1 and shared[0][1] == 1 and not exponent:  # b is one atom: so much it is at least
                number, least = shared[0][0], (float(b.range.mignitude) - b.error) * abs(float(factor)) / UP
                atom = self.atoms.table[number]
                self.atoms.table[number] = replace(atom, least=max(least, atom.least))
            return Element(outside, error * UP, range)
        near = self.atoms.nearest("inverse of", D)
        distance = near[1] if near else 0.0
        weight = self.atoms.mass({(self.atoms.zero, shared, exponent): 1 / factor})  # |b| ≤ |D| · weight
        pad = b.error + (max(distance * weight, FLOOR) if distance else 0.0)
        self._not_lost(pad, b)
        low = float(b.range.mignitude) - pad
        if near is None:
            most = (float(b.range.magnitude) + pad) * self.atoms.mass(outside) * UP
            held = Atom("inverse of", D, most, low / weight / UP, self.atoms.own(D))
            near = self.atoms.number(held), 0.0
            self._inverses[near[0]] = D
        terms = self.atoms.multiply(outside, {(self.atoms.zero, ((near[0], -1),), 0): fmpq(1)})
        error = max(pad / low / float(b.range.mignitude), FLOOR) if pad else 0.0
        return Element(terms, error * UP, range)

    def _not_lost(self, pad: float, b: Element) -> None:
        if not pad <= 0.5 * float(b.range.mignitude):
            raise Unproved("identity: a denominator is not known well enough")

    def _content(self, terms: Terms) -> tuple[tuple[tuple[int, int], ...], int]:
        """The atoms that all monomials contain with at least that power, and the exponent if it is common."""
        least: dict[int, int] | None = None
        for m in terms:
            powers = dict(m[1])
            least = powers if least is None else {a: min(p, powers[a]) for a, p in least.items() if a in powers}
        numbers = {m[2] for m in terms}
        return tuple(sorted((least or {}).items())), numbers.pop() if len(numbers) == 1 else 0

    def power(self, v: Element, k: int) -> Element:
        if k < 0:
            return self.power(self.inverse(v), -k)
        out = self.const(Fraction(1))
        for _ in range(k):
            out = self.mul(out, v)
        return Element(out.terms, out.error, INTERVALS.power(v.range, k))

    def total(self, values: list[Element]) -> Element:
        return reduce(self.add, values)

    # ---- functions

    def norm(self, values: list[Element]) -> Element:
        if len(values) == 1:
            return self.function("abs", values[0])
        return self.function("sqrt", self.total([self.power(v, 2) for v in values]))

    def extremum(self, op: str, a: Element, b: Element) -> Element:
        if op == "max":
            return self._within(self.add(b, self.positive(self.sub(a, b))), INTERVALS.extremum(op, a.range, b.range))
        return self._within(self.sub(b, self.positive(self.sub(b, a))), INTERVALS.extremum(op, a.range, b.range))

    def positive(self, t: Element) -> Element:
        """max(t, 0), of t with leading coefficient 1.

        It errs from Σ⁺ by no more than t from its Σ, as (·)⁺ is 1-Lipschitz; and Σ⁺ = Σ where Σ ≥ 0, and 0 where Σ ≤ 0.
        Whether a sign is made use of, the first Σ = c A, c > 0, decides for all that are near: so equal numbers are
        written alike, however well the range of each is known. Where A is taken for Σ/c, their distance is paid for.
        """
        range = INTERVALS.extremum("max", t.range, INTERVALS.const(Fraction(0)))
        if t.terms.keys() <= {self.atoms.one}:
            value = max(t.terms.get(self.atoms.one, ZERO), ZERO)
            return Element({self.atoms.one: value} if value else {}, t.error, range)
        first = lead(t.terms)[1]
        if first < 0:
            return self._within(self.add(t, self.positive(self.neg(t))), range)
        unit, sign = scale(t.terms, 1 / moderate(first)), self._sign(t)
        near = self.atoms.nearest("positive", unit)
        if near is None:
            size = (float(range.magnitude) + t.error) / float(first) * UP
            size = min(size, self.atoms.mass(unit))  # A⁺ ≤ |A|, which a range does not know where terms have cancelled
            near = self.atoms.number(Atom("positive", unit, size, 0.0, self.atoms.own(unit))), 0.0
            if sign:
                self._signs[near[0]] = sign
        known = self._signs.get(near[0], 0)
        if known and sign:
            return Element(t.terms if sign > 0 else {}, t.error, range)
        plus = self._atom(near[0], 0.0, range).terms if not known else self.atoms.table[near[0]].argument
        error = ((max(near[1] * float(first), FLOOR) if near[1] else 0.0) + t.error) * UP
        return Element(scale(plus, first) if known >= 0 else {}, error, range)

    def _sign(self, t: Element) -> int:
        """Of Σ, which is within e of t: t ≥ e makes it ≥ 0, t ≤ −e makes it ≤ 0; or from its terms; 0 if unknown."""
        for low, high in ((t.range.lo - t.error, t.range.hi + t.error), self._span(t.terms)):
            if low >= 0 or high <= 0:
                return 1 if low >= 0 else -1
        return 0

    def _span(self, terms: Terms) -> tuple[float, float]:
        """Where a short Σ lies, term by term: what a range does not know where terms have cancelled."""
        out = between(0.0, 0.0) if len(terms) <= SHORT else between(-math.inf, math.inf)
        for m, c in terms.items() if len(terms) <= SHORT else ():
            size, factor = self.atoms.size(m), INTERVALS.const(Fraction(int(c.numerator), int(c.denominator)))
            unknown = between(-size if any(m[0]) or m[1] else 0.0, size)  # e^E > 0
            held = between(1.0, 1.0) if m == self.atoms.one else self._ranges.get(m, unknown)
            out = INTERVALS.add(out, INTERVALS.mul(factor, held))
        return float(out.lo), float(out.hi)

    def function(self, fn: str, v: Element) -> Element:
        if fn == "abs":
            both = self.add(self.positive(v), self.positive(self.neg(v)))
            return self._within(both, INTERVALS.function("abs", v.range))
        if fn == "sqrt":
            return self.root(v)
        range = INTERVALS.function(fn, v.range)
        if v.terms.keys() <= {self.atoms.one}:
            moved = max(slope(fn, v.range, v.error) * v.error, FLOOR) if v.error else 0.0
            return self._number(fn, v.terms.get(self.atoms.one, ZERO), moved)
        if fn == "exp":
            return self._exponential(v, range)
        return self._of_atom(fn, v, range)

    def root(self, v: Element) -> Element:
        """√max(v, 0), which is what a Sumformer takes too."""
        above = INTERVALS.extremum("max", v.range, INTERVALS.const(Fraction(0)))
        if v.terms.keys() <= {self.atoms.one}:
            moved = max(float(root_moves(float(v.range.lo), v.error)), FLOOR) if v.error else 0.0
            at = max(v.terms.get(self.atoms.one, ZERO), ZERO)
            return self._number("sqrt", at, moved) if at or moved else self.const(Fraction(0))
        return self._of_atom("sqrt", v, INTERVALS.function("sqrt", above))

    def _of_atom(self, fn: str, v: Element, range: Interval) -> Element:
        near = self.atoms.nearest(fn, v.terms)
        pad = v.error + (near[1] if near else 0.0)
        moved = float(root_moves(float(v.range.lo), pad)) if fn == "sqrt" else slope(fn, v.range, pad) * pad
        error = max(moved, FLOOR) if pad else 0.0
        if near is None:
            size, least = float(range.magnitude) + error, max(0.0, float(range.mignitude) - error)
            near = self.atoms.number(Atom(fn, v.terms, size * UP, least / UP, self.atoms.own(v.terms))), 0.0
            if fn == "log":
                self._logs[near[0]] = Element(v.terms, 0.0, widened(v.range, v.error))
        return self._atom(near[0], error * UP, range)

    def _number(self, fn: str, at: fmpq, moved: float) -> Element:
        """fn within `moved` of that of a constant: a number, within the error of its enclosure."""
        found = INTERVALS.function(fn, INTERVALS.const(Fraction(int(at.numerator), int(at.denominator))))
        middle = float(found.lo + found.hi) / 2
        error = (max(float(found.hi) - middle, middle - float(found.lo)) + moved) * UP
        return Element({self.atoms.one: rational(middle)} if middle else {}, error, widened(found, moved))

    def _exponential(self, v: Element, range: Interval) -> Element:
        pulled, rest = self.const(Fraction(1)), dict(v.terms)
        for m, c in v.terms.items():
            single = m[1][0][0] if m[0] == self.atoms.zero and not m[2] and len(m[1]) == 1 and m[1][0][1] == 1 else -1
            if single in self._logs and c.denominator == 1 and abs(int(c.numerator)) <= 64:
                del rest[m]
                pulled = self.mul(pulled, self.power(self._logs[single], int(c.numerator)))
        number, distance = self.atoms.exponent(rest, near=True)
        pad = v.error + distance
        error = max(slope("exp", v.range, pad) * pad, FLOOR) if pad else 0.0
        terms = self._reduced(self.atoms.multiply(pulled.terms, {(self.atoms.zero, (), number): fmpq(1)}))
        lost = max(pulled.error * self.atoms.exponents[number].size, FLOOR) if pulled.error else 0.0
        return Element(terms, (error + lost) * UP, range)

    def _within(self, e: Element, range: Interval) -> Element:
        return Element(e.terms, e.error, range)
