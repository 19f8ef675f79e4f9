"""e(x, y) = Σ_t a_t(x) · b_t(y) · p_t(v) · Π_g K_g(x, y): what ψ, φ and the interpolation each take over, exactly.

a_t  values of the own token (ψ computes them as written, reductions inside them included)
b_t  non-polynomial factors in y alone (φ computes them as written): a *channel*
p_t  a polynomial in the centred coordinates v of y, in the Chebyshev basis
K_g  mixed factors, the only thing that is interpolated; different g mention different coordinates
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product

from sumformer.algebra import chebyshev
from sumformer.errors import RefusedError
from sumformer.targets import Const, Node, Reduce, reductions, to_source
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.components import component, coordinates, has_reduction
from sumformer.theorems.alberti_2023.expansion import (
    Atom,
    Centred,
    Expander,
    Grouping,
    Monomial,
    atom_key,
    connected,
    is_other,
    is_own,
    is_polynomial_atom,
)

MultiIndex = tuple[int, ...]


@dataclass(frozen=True)
class Term:
    """a(x) · b(y) · p(v) · Π_g K_g(x, y); `kernels` in the order of their first coordinate."""

    own: Monomial
    own_node: Node
    channel: Node
    polynomial: tuple[tuple[MultiIndex, Fraction], ...]
    kernels: tuple[Node, ...]


@dataclass(frozen=True)
class ReducedSum:
    """One reduction of the target and, for each coordinate of its body, the terms."""

    reduction: Reduce
    components: tuple[tuple[Term, ...], ...]


@dataclass(frozen=True)
class Decomposition:
    """All reductions of a target, inner ones first; `polynomial` when everything is a polynomial written with sums."""

    expression: Node
    expander: Expander
    sums: tuple[ReducedSum, ...]
    polynomial: bool

    @property
    def kernels(self) -> tuple[Node, ...]:
        """The distinct mixed factors."""
        found = {k: None for s in self.sums for terms in s.components for t in terms for k in t.kernels}
        return tuple(found)


def decompose(expression: Node, box: Box, grouping: Grouping) -> Decomposition:
    """Every reduction of `expression` as sums of terms; refuses what has no such form."""
    expander = Expander(box, grouping)
    sums = []
    for reduction in reductions(expression):
        if reduction.kind in ("max", "min"):
            raise RefusedError(
                "route sums: the target is not made of sums",
                [f"{to_source(reduction)} is a {reduction.kind} over tokens; take sum(…) or mean(…), or route cells"],
            )
        bodies = [component(reduction.body, c) for c in range(reduction.width)]
        sums.append(ReducedSum(reduction, tuple(_terms(body, expander) for body in bodies)))
    outer = [expander.expand(component(expression, c)) for c in range(expression.width)]
    polynomial = all(
        is_polynomial_atom(a) and e > 0 for expansion in outer for monomial in expansion for a, e in monomial
    ) and all(_is_polynomial(t) for s in sums for terms in s.components for t in terms)
    return Decomposition(expression, expander, tuple(sums), polynomial)


def _is_polynomial(term: Term) -> bool:
    own_is_polynomial = all(is_polynomial_atom(a) and e > 0 for a, e in term.own)
    return not term.kernels and isinstance(term.channel, Const) and own_is_polynomial


def _terms(body: Node, expander: Expander) -> tuple[Term, ...]:
    d = len(expander.box.centre)
    collected: dict[tuple[Monomial, Node, tuple[Node, ...]], dict[MultiIndex, Fraction]] = {}
    for monomial, coefficient in expander.expand(body).items():
        own = frozenset((a, e) for a, e in monomial if is_own(a))
        powers = {a.index: e for a, e in monomial if isinstance(a, Centred) and a.name == "y"}
        other = [(a, e) for a, e in monomial if isinstance(a, Node) and is_other(a)]
        mixed = [(a, e) for a, e in monomial if isinstance(a, Node) and not is_own(a) and not is_other(a)]
        negative = {c: e for c, e in powers.items() if e < 0}
        other += [(_coordinate(expander, c), e) for c, e in negative.items()]
        gamma = tuple(max(powers.get(c, 0), 0) for c in range(d))
        key = (own, _product(other), _kernels(mixed))
        polynomial = collected.setdefault(key, {})
        for index, value in _chebyshev(gamma):
            polynomial[index] = polynomial.get(index, Fraction(0)) + coefficient * value
    return tuple(
        Term(
            own,
            expander.node({own: Fraction(1)}),
            channel,
            tuple(sorted((g, c) for g, c in polynomial.items() if c)),
            kernels,
        )
        for (own, channel, kernels), polynomial in collected.items()
        if any(polynomial.values())
    )


def _coordinate(expander: Expander, c: int) -> Node:
    return expander.node({frozenset({(Centred("y", c), 1)}): expander.box.radius[c] ** 0})


def _product(factors: Sequence[tuple[Atom, int]]) -> Node:
    ordered = sorted(factors, key=lambda pair: atom_key(pair[0]))
    nodes = [a**e if e != 1 else a for a, e in ordered if isinstance(a, Node)]
    return reduce(lambda a, b: a * b, nodes) if nodes else Const(Fraction(1))


def _kernels(mixed: list[tuple[Node, int]]) -> tuple[Node, ...]:
    for atom, _ in mixed:
        if has_reduction(atom):
            raise RefusedError(
                "route sums: a nested reduction stands inside a kernel",
                [f"{to_source(atom)} mixes y with a reduction and is not a polynomial in it"],
            )
    exponent = dict(mixed)
    groups = connected(list(exponent), coordinates)
    kernels = [_product([(a, exponent[a]) for a in group]) for group in groups]
    return tuple(sorted(kernels, key=lambda k: (sorted(coordinates(k)), to_source(k))))


def _chebyshev(gamma: MultiIndex) -> list[tuple[MultiIndex, Fraction]]:
    """v^γ = Σ coefficient · T_index(v)."""
    tables = [[(k, c) for k, c in enumerate(chebyshev.monomial(e)) if c] for e in gamma]
    return [
        (tuple(k for k, _ in choice), reduce(lambda a, b: a * b, (c for _, c in choice), Fraction(1)))
        for choice in product(*tables)
    ]
