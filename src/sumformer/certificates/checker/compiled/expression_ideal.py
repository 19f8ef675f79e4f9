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
from math import inf

from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.axes import most_axes
from sumformer.certificates.checker.bound import bound
from sumformer.certificates.checker.cells import Cells, cells_per_axis
from sumformer.certificates.checker.compiled.atoms import Terms, add, rational, scale
from sumformer.certificates.checker.compiled.element import Element, widened
from sumformer.certificates.checker.compiled.forms import INTERVALS, Forms
from sumformer.certificates.checker.compiled.ledger import Value
from sumformer.certificates.checker.compiled.reductions import Quotient, Reductions
from sumformer.certificates.checker.compiled.series import Place, Series, reduction_ranges
from sumformer.certificates.checker.compiled.written_out import apart
from sumformer.certificates.checker.interval import Floats, Interval, meet
from sumformer.certificates.checker.kernel_error import KernelError
from sumformer.certificates.checker.network import Network
from sumformer.certificates.checker.proof import Pass, Setting, left_out_mass
from sumformer.certificates.checker.propagation import BUDGETS, token_pieces
from sumformer.certificates.checker.tree_values import components
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.target import Target

CLOSE = 1e-6


@dataclass(frozen=True)
class ExpressionIdeal:
    """S over the atoms of `forms`; `parts` are those of |f − S|."""

    parts: tuple[float, float]
    reductions: Reductions
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
        reductions = Reductions(Series(net, weights, passes, forms), reduction_ranges(passes))
        return ExpressionIdeal(parts, reductions, [])

    @property
    def forms(self) -> Forms:
        return self.reductions.forms

    def outputs(self) -> list[list[Element]]:
        """With quotients of reductions as they are, and written out."""
        ways, reasons = [], []
        for leaf in (lambda part: self.reductions.quotient(part) or self.reductions.leaf(part), self.reductions.leaf):
            try:
                ways.append(components(self.reductions.net.expression, self.forms, leaf))
            except Unproved as why:
                reasons.append(why)
        if not ways:
            raise reasons[0]
        return ways

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
        for node in (r.node for r in self.reductions.net.reductions if 0 <= c < len(r.components)):
            written = self.reductions.written(node, c)
            away = apart(found.terms, written.terms, self.reductions.meaning, self.forms.atoms)
            near.append((away, written.error, (node, c)))
        distance, lost, place = min(near, key=lambda entry: entry[0], default=(inf, 0.0, None))
        if place is None or not distance <= CLOSE * max(1.0, found.size):
            raise Unproved(f"identity: {value.name} is not shown to be a reduction of the Sumformer")
        error, name = found.error + distance + lost, self.reductions.name(place)
        return Element(name.terms, error, meet(found.range, widened(name.range, error)))

    def _as_quotient(self, value: Value, found: Element) -> Element | None:
        distance, limit = self.forms.atoms.distance, CLOSE * max(1.0, found.size)
        k = value.because.get("c")
        for q in self.reductions.quotients:
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
