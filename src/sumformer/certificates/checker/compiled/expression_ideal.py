"""S = the target with every reduction replaced by Σ_t a_t(x) V_t, V_t = mean_k b p_t K̃ (less the own share), exactly.

|f − S| by the passes of `bound` in real arithmetic. Of the program's values it knows
  a reduction                  where f's own lies, ± what S errs
  den = V of c·b·K̃            in the hull of c b K̃ over the cells, K̃ = K ± e
  num + k·den = den (q + k)    q = Σ b K̃ g / Σ b K̃ a mean of g, b K̃ > 0
  log(num + k·den) − log den   = log(q + k)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product as cartesian
from math import inf

from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.axes import most_axes
from sumformer.certificates.checker.bound import bound
from sumformer.certificates.checker.cells import Cells, cells_per_axis
from sumformer.certificates.checker.compiled.atoms import Terms, add, rational, scale
from sumformer.certificates.checker.compiled.element import Element, between, widened
from sumformer.certificates.checker.compiled.forms import INTERVALS, Forms
from sumformer.certificates.checker.compiled.ledger import Value
from sumformer.certificates.checker.compiled.series import Place, Series, reduction_ranges
from sumformer.certificates.checker.compiled.written_out import apart, meanings
from sumformer.certificates.checker.interval import Floats, Interval, meet
from sumformer.certificates.checker.kernel_error import KernelError
from sumformer.certificates.checker.network import Network, Reduction, Term
from sumformer.certificates.checker.proof import Pass, Setting, left_out_mass
from sumformer.certificates.checker.propagation import BUDGETS, token_pieces
from sumformer.certificates.checker.quotient import shared
from sumformer.certificates.checker.tree_values import components, reduction_at
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.node import Node
from sumformer.targets.target import Target
from sumformer.targets.tree import Binary, Reduce, Token

CLOSE = 1e-6


@dataclass(frozen=True)
class Quotient:
    """num/den = q ∈ `integrand`, without the factors they share."""

    above: Place
    below: Place
    num: Element
    den: Element
    integrand: Interval


@dataclass(frozen=True)
class ExpressionIdeal:
    """S over the atoms of `forms`."""

    parts: tuple[float, float]
    sums: Series
    ranges: dict[Place, Interval]
    tops: list[tuple[Terms, Quotient, float]]

    @staticmethod
    def prove(
        f: Target, net: Network, weights: tuple[Floats, ...], errors: Sequence[KernelError], claim: float, forms: Forms
    ) -> ExpressionIdeal:
        left_out = tuple(left_out_mass(net, weights, j) for j in range(len(net.products)))
        exact, none = Arithmetic.exact(), (0.0,) * len(net.products)
        remainders, totals = tuple(e.remainder for e in errors), tuple(e.total for e in errors)
        for budget in BUDGETS:
            cells = Cells(net, cells_per_axis(budget, most_axes(net)))
            pieces = [Setting(net, piece, weights, cells) for piece in token_pieces(net, f.tokens)]
            passes = tuple(Pass(setting, exact, totals, left_out) for setting in pieces)
            try:
                second = max(bound(p) for p in passes)
                first = max(bound(replace(p, kernel_errors=remainders, left_out=none)) for p in passes)
            except Unproved:
                if budget == BUDGETS[-1]:
                    raise
                continue
            if second <= claim:  # finer cells are not needed
                break
        parts = (first, max(0.0, second - first))
        return ExpressionIdeal(parts, Series(net, weights, passes, forms), reduction_ranges(passes), [])

    @property
    def net(self) -> Network:
        return self.sums.net

    @property
    def forms(self) -> Forms:
        return self.sums.forms

    # ---- S

    def outputs(self) -> list[list[Element]]:
        """With quotients of reductions as they are, and written out."""
        ways, reasons = [], []
        for leaf in (lambda part: self.quotient(part) or self.leaf(part), self.leaf):
            try:
                ways.append(components(self.net.expression, self.forms, leaf))
            except Unproved as why:
                reasons.append(why)
        if not ways:
            raise reasons[0]
        return ways

    def leaf(self, part: Node) -> list[Element] | None:
        if isinstance(part, Token):
            return [self.sums.coordinate(c) for c in range(self.net.d)] if part.name == "x" else None
        if isinstance(part, Reduce):
            return [self._name((part, c)) for c in range(part.width)]
        return None

    def _name(self, place: Place) -> Element:
        """The atom of a reduction; two that are written alike are one."""
        if place not in self._names:
            mine = next(r for r in self.net.reductions if r.node == place[0])
            known = [p for p in tuple(self._names) if self._alike(p, (mine.node, place[1]))]
            self._names[place] = self._names[known[0]] if known else place
        first = self._names[place]
        return self.forms.named(first, self.ranges[first])

    def _alike(self, one: Place, other: Place) -> bool:
        try:
            a, b = (self._written(*place) for place in (one, other))
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

    # ---- what it says of the program's values

    def refine(self, value: Value, found: Element) -> Element:
        if value.op != "sum" or not value.because:
            return found
        return self._as_reduction(value, found) or self._as_quotient(value, found) or found

    def _as_reduction(self, value: Value, found: Element) -> Element | None:
        c = value.because.get("component")
        if "reduction" not in value.because or not isinstance(c, int):
            return None
        near: list[tuple[float, float, Place]] = []
        for node in (r.node for r in self.net.reductions if 0 <= c < len(r.components)):
            written = self._written(node, c)
            near.append((apart(found.terms, written.terms, self._meaning, self.forms.atoms), written.error, (node, c)))
        distance, lost, place = min(near, key=lambda entry: entry[0], default=(inf, 0.0, None))
        if place is None or not distance <= CLOSE * max(1.0, found.size):
            raise Unproved(f"identity: {value.name} is not shown to be a reduction of the Sumformer")
        error, name = found.error + distance + lost, self._name(place)
        return Element(name.terms, error, meet(found.range, widened(name.range, error)))

    @cached_property
    def _meaning(self) -> dict[int, Terms]:
        """What the names of the reductions stand for, inner ones first."""
        places = [(r.node, c) for r in self.net.reductions for c in range(len(r.components))]
        return meanings([(self._name(place), self._written(*place)) for place in places], self.forms.atoms)

    def _written(self, node: Reduce, c: int) -> Element:
        if (node, c) not in self._explicit:
            reduction = next(r for r in self.net.reductions if r.node == node)
            self._explicit[node, c] = self.reduction(reduction, c)
        return self._explicit[node, c]

    @cached_property
    def _explicit(self) -> dict[Place, Element]:
        return {}

    def _as_quotient(self, value: Value, found: Element) -> Element | None:
        distance, limit = self.forms.atoms.distance, CLOSE * max(1.0, found.size)
        k = value.because.get("c")
        for q in self.quotients:
            apart = distance(found.terms, q.den.terms)
            if apart <= limit:
                return _met(found, q.den.range, found.error + apart + q.den.error)
            if isinstance(k, float):
                top = add(q.num.terms, scale(q.den.terms, rational(k)))
                apart = distance(found.terms, top)
                if apart <= limit:
                    self.tops.append((found.terms, q, k))
                    high = INTERVALS.mul(q.den.range, INTERVALS.add(q.integrand, INTERVALS.const(Fraction(k))))
                    return _met(found, high, found.error + apart + q.num.error + abs(k) * q.den.error)
        return self._as_logarithm(found)

    def _as_logarithm(self, found: Element) -> Element | None:
        """log(num + k·den) − log den."""
        table = self.forms.atoms.table
        bare = {m: m[1][0][0] for m in found.terms if not any(m[0]) and not m[2] and [k for _, k in m[1]] == [1]}
        signs = {int(c): table[bare[m]] for m, c in found.terms.items() if m in bare and abs(c) == 1}
        if len(found.terms) != 2 or signs.keys() != {1, -1} or any(a.kind != "log" for a in signs.values()):
            return None
        for terms, q, k in self.tops:
            apart = self.forms.atoms.distance(signs[-1].argument, q.den.terms)
            if signs[1].argument != terms or not apart <= CLOSE * q.den.size:
                continue
            far = self.forms.atoms.distance(terms, add(q.num.terms, scale(q.den.terms, rational(k)))) + q.num.error
            far, apart = far + abs(k) * q.den.error, apart + q.den.error
            inside = INTERVALS.add(q.integrand, INTERVALS.const(Fraction(k)))
            least = float(q.den.range.lo)
            shares = apart / least, far / least / float(inside.lo)
            if not all(share <= 0.5 for share in shares):  # |log(1 + δ)| ≤ 2|δ| up to there
                continue
            moved = 2 * sum(shares)
            return _met(found, INTERVALS.function("log", inside), found.error + moved)
        return None


def _met(found: Element, range: Interval, error: float) -> Element:
    return Element(found.terms, found.error, meet(found.range, widened(range, error)))
