"""Monomials T_α(u) · Π atom^k · exp(E) over numbered atoms, their sizes, and what they are functions of.

Atoms are function values g(A) of a sum A of monomials, means over tokens of a monomial, and named numbers. Equal ones
get equal numbers; `nearest` also finds one whose argument differs by little, and by how much.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product as cartesian

from flint import fmpq

from sumformer.certificates.checker.verification import Unproved

Monomial = tuple[tuple[int, ...], tuple[tuple[int, int], ...], int]  # α, ((atom, power), …), number of the exponent
Terms = dict[Monomial, fmpq]
MAX_WORK = 20_000_000
NEAR = 1e-6  # arguments that differ by less, relatively, are taken for each other; the difference is paid for
UP = 1 + 1e-14  # covers the few roundings of each bound


@dataclass(frozen=True)
class Atom:
    """`least` ≤ |value| ≤ `size`; `own`: a function of the own token alone."""

    kind: Hashable
    argument: Terms
    size: float
    least: float
    own: bool


@dataclass(frozen=True)
class Exponent:
    terms: Terms
    size: float  # of e^E
    own: bool


class Atoms:
    """The tables, for tokens of d coordinates."""

    def __init__(self, d: int) -> None:
        self.d, self.zero = d, (0,) * d
        self.one: Monomial = (self.zero, (), 0)
        self.table: list[Atom] = []
        self.exponents: list[Exponent] = [Exponent({}, 1.0, True)]
        self._numbers: dict[Hashable, int] = {}
        self._kinds: dict[Hashable, list[int]] = {}
        self._work = 0

    # ---- numbers

    def number(self, atom: Atom) -> int:
        """The atom's number, a new one where it is not known."""
        key = (atom.kind, frozenset(atom.argument.items()))
        if key not in self._numbers:
            self._numbers[key] = len(self.table)
            self._kinds.setdefault(atom.kind, []).append(len(self.table))
            self.table.append(atom)
        return self._numbers[key]

    def nearest(self, kind: Hashable, argument: Terms) -> tuple[int, float] | None:
        """A known atom of this kind and the distance of its argument."""
        known = self._numbers.get((kind, frozenset(argument.items())))
        if known is not None:
            return known, 0.0
        return self._nearest(argument, {i: self.table[i].argument for i in self._kinds.get(kind, ())})

    def _nearest(self, terms: Terms, known: Mapping[int, Terms]) -> tuple[int, float] | None:
        distance, i = min(((self.distance(terms, found), i) for i, found in known.items()), default=(math.inf, -1))
        moving = self.mass({m: c for m, c in terms.items() if m != self.one})
        near = math.isfinite(distance) and distance <= NEAR * moving + 2.0**-46 * self.mass(terms)
        return (i, distance) if near else None

    def exponent(self, terms: Terms, near: bool = False) -> tuple[int, float]:
        """The number of an exponent, and the distance to it where a near one may be taken."""
        if not terms:
            return 0, 0.0
        key = ("exponent", frozenset(terms.items()))
        if key in self._numbers:
            return self._numbers[key], 0.0
        known = {i: self.exponents[i].terms for i in range(1, len(self.exponents))} if near else {}
        if found := self._nearest(terms, known):
            return found
        constant = float(terms.get(self.one, fmpq(0)))
        high = constant + self.mass({m: c for m, c in terms.items() if m != self.one})
        self._numbers[key] = len(self.exponents)
        size = math.exp(high) * UP if high < 700 else math.inf
        self.exponents.append(Exponent(terms, size, self.own(terms)))
        return self._numbers[key], 0.0

    # ---- sizes

    def size(self, monomial: Monomial) -> float:
        """A bound of |monomial|, |T_α| ≤ 1."""
        out = self.exponents[monomial[2]].size
        for atom, power in monomial[1]:
            found = self.table[atom]
            base = found.size if power > 0 else (1 / found.least if found.least > 0 else math.inf)
            out = _above(out * _above(base ** abs(power)))
        return out

    def mass(self, terms: Terms) -> float:
        """Σ |c| · |monomial|, rounded up."""
        return math.fsum(_above(_above(abs(float(c))) * self.size(m)) for m, c in terms.items()) * UP

    def distance(self, a: Terms, b: Terms) -> float:
        """The mass of a − b."""
        return self.mass(subtract(a, b))

    def own(self, terms: Terms) -> bool:
        return all(self.exponents[m[2]].own and all(self.table[atom].own for atom, _ in m[1]) for m, c in terms.items())

    # ---- products

    def multiply(self, a: Terms, b: Terms) -> Terms:
        """The product, T_a T_b = (T_{a+b} + T_{|a−b|})/2 in every coordinate."""
        self._work += len(a) * len(b)
        if self._work > MAX_WORK:
            raise Unproved(f"identity: the expansion takes more than {MAX_WORK} products of terms")
        out: Terms = {}
        for m, p in a.items():
            for n, q in b.items():
                rest, exponent = self._joined(m, n)
                choices = [
                    (i,) if j == 0 else (j,) if i == 0 else (i + j, abs(i - j)) for i, j in zip(m[0], n[0], strict=True)
                ]
                doubled = sum(len(choice) > 1 for choice in choices)
                value = p * q / 2**doubled if doubled else p * q
                for alpha in cartesian(*choices):
                    key = (alpha, rest, exponent)
                    out[key] = out[key] + value if key in out else value
        return {m: c for m, c in out.items() if c}

    def _joined(self, m: Monomial, n: Monomial) -> tuple[tuple[tuple[int, int], ...], int]:
        rest = m[1] or n[1]
        if m[1] and n[1]:
            powers = dict(m[1])
            for atom, power in n[1]:
                powers[atom] = powers.get(atom, 0) + power
            rest = tuple(sorted((atom, power) for atom, power in powers.items() if power))
        exponent = m[2] or n[2]
        if m[2] and n[2]:
            exponent = self.exponent(add(self.exponents[m[2]].terms, self.exponents[n[2]].terms))[0]
        return rest, exponent


def _above(value: float) -> float:
    """The number above, so that no positive number is lost to underflow; ∞ for 0 · ∞."""
    return math.inf if math.isnan(value) else math.nextafter(value, math.inf)


def add(a: Terms, b: Terms) -> Terms:
    out = dict(a)
    for m, c in b.items():
        total = out[m] + c if m in out else c
        if total:
            out[m] = total
        else:
            out.pop(m, None)
    return out


def subtract(a: Terms, b: Terms) -> Terms:
    return add(a, scale(b, fmpq(-1)))


def scale(a: Terms, factor: fmpq) -> Terms:
    return {m: c * factor for m, c in a.items()} if factor else {}


def lead(terms: Terms) -> tuple[Monomial, fmpq]:
    """The monomial with the largest coefficient, not 1 if another is there; of those equal to six digits, the last."""
    return max(terms.items(), key=lambda pair: (_varies(pair[0]), float(f"{abs(float(pair[1])):.5e}"), pair[0]))


def _varies(m: Monomial) -> bool:
    return any(m[0]) or bool(m[1]) or bool(m[2])


def rational(value: Fraction | float | int) -> fmpq:
    """Exactly."""
    p, q = value.as_integer_ratio()
    return fmpq(p, q)
