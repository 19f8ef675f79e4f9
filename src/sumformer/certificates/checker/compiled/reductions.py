"""The reductions of S = Σ_t a_t(x) V_t, V_t = mean_k b p_t K̃ (less the own share), and quotients of them, over atoms.

A quotient whose sides share their kernels is q = Σ b K̃ g / Σ b K̃, with b K̃ > 0 a mean of g.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product as cartesian

from sumformer.certificates.checker.compiled.atoms import Terms
from sumformer.certificates.checker.compiled.element import Element, between
from sumformer.certificates.checker.compiled.forms import INTERVALS, Forms
from sumformer.certificates.checker.compiled.series import Place, Series
from sumformer.certificates.checker.compiled.written_out import meanings
from sumformer.certificates.checker.interval import Interval
from sumformer.certificates.checker.network import Network, Reduction, Term
from sumformer.certificates.checker.proof import Pass
from sumformer.certificates.checker.quotient import shared
from sumformer.certificates.checker.tree_values import components, reduction_at
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.node import Node
from sumformer.targets.tree import Binary, Reduce, Token


@dataclass(frozen=True)
class Quotient:
    """num/den = q ∈ `integrand`, without the factors they share."""

    above: Place
    below: Place
    num: Element
    den: Element
    integrand: Interval


@dataclass(frozen=True)
class Reductions:
    """Of S, over the atoms of `forms`; `ranges` holds where f's own lie, ± what S errs."""

    sums: Series
    ranges: dict[Place, Interval]

    @property
    def net(self) -> Network:
        return self.sums.net

    @property
    def forms(self) -> Forms:
        return self.sums.forms

    def leaf(self, part: Node) -> list[Element] | None:
        if isinstance(part, Token):
            return [self.sums.coordinate(c) for c in range(self.net.d)] if part.name == "x" else None
        if isinstance(part, Reduce):
            return [self.name((part, c)) for c in range(part.width)]
        return None

    def name(self, place: Place) -> Element:
        """The atom of a reduction; two that are written alike are one."""
        if place not in self._names:
            mine = next(r for r in self.net.reductions if r.node == place[0])
            known = [p for p in tuple(self._names) if self._alike(p, (mine.node, place[1]))]
            self._names[place] = self._names[known[0]] if known else place
        first = self._names[place]
        return self.forms.named(first, self.ranges[first])

    def _alike(self, one: Place, other: Place) -> bool:
        try:
            a, b = (self.written(*place) for place in (one, other))
        except Unproved:  # sums over an unknown number of tokens
            return False
        return a.terms == b.terms and not a.error and not b.error

    @cached_property
    def _names(self) -> dict[Place, Place]:
        return {}

    def quotient(self, part: Node) -> list[Element] | None:
        """num/den of every coordinate of a quotient of reductions that share their kernels."""
        if not (isinstance(part, Binary) and part.op == "/"):
            return None
        out = []
        for c in range(part.width):
            above, below = (reduction_at(side, c if side.width > 1 else 0) for side in (part.left, part.right))
            known = next((q for q in self.quotients if (q.above, q.below) == (above, below)), None)
            if known is None:
                return None
            value = self.forms.mul(known.num, self.forms.inverse(known.den))
            out.append(Element(value.terms, value.error, known.integrand))
        return out

    def reduction(self, reduction: Reduction, c: int) -> Element:
        """n^{…} Σ_t a_t V_t, written out."""
        others = reduction.node.kind.endswith("_others")
        out = self.forms.const(Fraction(0))
        for term in reduction.components[c]:
            out = self.forms.add(out, self.forms.mul(self._own(term), self.sums.series(term, others)))
        kind, n = reduction.node.kind, self.sums.count
        if kind != "mean":
            if n is None:
                raise Unproved("identity: a sum over tokens needs their number")
            out = self.forms.scaled(out, Fraction(n, n - 1) if kind == "mean_others" else Fraction(n))
        return Element(out.terms, out.error, self.ranges[reduction.node, c])

    def _own(self, term: Term) -> Element:
        return components(term.own, self.forms, self.leaf)[0]

    @cached_property
    def quotients(self) -> list[Quotient]:
        out = []
        for top, bottom in cartesian(self.net.reductions, repeat=2):
            for c, terms in enumerate(top.components):
                pattern = shared(terms, bottom.components[0], (top.node.kind, bottom.node.kind))
                if pattern is None or bottom.node.width != 1:
                    continue
                try:
                    found = self._quotient((top.node, c), (bottom.node, 0), terms, pattern.denominator)
                except Unproved:
                    continue
                out.append(found)
        return out

    def _quotient(self, above: Place, below: Place, terms: tuple[Term, ...], under: Term) -> Quotient:
        others = below[0].kind.endswith("_others")
        inverse = self.forms.inverse(self._own(under))
        ratios = [self.forms.mul(self._own(term), inverse) for term in terms]
        num = self.forms.const(Fraction(0))
        for term, ratio in zip(terms, ratios, strict=True):
            num = self.forms.add(num, self.forms.mul(ratio, self.sums.series(term, others)))
        den = self.sums.series(under, others)
        lows, highs = [], []
        for p in self.sums.passes:
            if not bool((self.sums.weight_on_cells(p, under).lo > 0).all()) or under.polynomial[0][1] <= 0:
                raise Unproved("b K̃ may vanish")
            g = p.setting.cells.full(INTERVALS.const(Fraction(0)))
            for term, ratio in zip(terms, ratios, strict=True):
                own = self._ratio(p, term, under, ratio)
                g = INTERVALS.add(g, INTERVALS.mul(own, p.setting.cells.polynomial(term.polynomial)))
            g = INTERVALS.div(g, INTERVALS.const(under.polynomial[0][1]))
            lows.append(float(g.lo.min()))
            highs.append(float(g.hi.max()))
        return Quotient(above, below, num, den, between(min(lows), max(highs)))

    def _ratio(self, p: Pass, term: Term, under: Term, ratio: Element) -> Interval:
        """a_t/a on the cells of x: 1, or from its form where it is a polynomial of u, else by intervals."""
        cells = p.setting.cells
        if term.own == under.own:
            return cells.full(INTERVALS.const(Fraction(1)))
        if not ratio.error and all(not m[1] and not m[2] for m in ratio.terms):
            polynomial = tuple((m[0], Fraction(int(c.numerator), int(c.denominator))) for m, c in ratio.terms.items())
            value = cells.polynomial(polynomial)  # along the axes of y: turn them into those of x
            d = self.net.d
            order = (*range(d, 2 * d), *range(d))
            return Interval(value.lo.transpose(order), value.hi.transpose(order))

        def leaf(part: Node) -> list[Interval] | None:
            if isinstance(part, Reduce):
                return [self.ranges[part, c] for c in range(part.width)]
            return p.setting.x if isinstance(part, Token) else None

        return cells.full(INTERVALS.div(*(components(t.own, INTERVALS, leaf)[0] for t in (term, under))))

    @cached_property
    def meaning(self) -> dict[int, Terms]:
        """What the names of the reductions stand for, inner ones first."""
        places = [(r.node, c) for r in self.net.reductions for c in range(len(r.components))]
        return meanings([(self.name(place), self.written(*place)) for place in places], self.forms.atoms)

    def written(self, node: Reduce, c: int) -> Element:
        if (node, c) not in self._explicit:
            reduction = next(r for r in self.net.reductions if r.node == node)
            self._explicit[node, c] = self.reduction(reduction, c)
        return self._explicit[node, c]

    @cached_property
    def _explicit(self) -> dict[Place, Element]:
        return {}
