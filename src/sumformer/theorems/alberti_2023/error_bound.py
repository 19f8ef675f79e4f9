"""|f(X) − N(X)| ≤ bound, for every X in the box and every number of tokens asked for.

The target's own tree is evaluated in tracked arithmetic (exact range, error) over cells of x; what a reduction
contributes is bounded from its decomposition Σ_t a_t(x) · mean_k b(x_k) p_t(v_k) K(x, x_k):
  approximation   Σ over kernels of  sup|K − K̃| · sup_y |b Σ_t a_t p_t|
  rounding        |a_t| · b_max · ‖p_t‖₁ · S · δ_t,  S = Π Σ|A|, plus that of a_t and of the sum over t
Quotients of two reductions over one kernel are bounded as a whole (`normalised.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sumformer.algebra.interval import Interval
from sumformer.algebra.rounding import FloatArray
from sumformer.algebra.tracked import INFLATE, Tracked, TrackedOperations
from sumformer.targets import Binary, Node, Reduce, postorder
from sumformer.targets.domain import Tokens
from sumformer.targets.evaluate import evaluate
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.decomposition import ReducedSum, Term
from sumformer.theorems.alberti_2023.kernel_errors import KernelErrors, Switches
from sumformer.theorems.alberti_2023.mesh_plan import MeshPlan
from sumformer.theorems.alberti_2023.normalised import Quotients
from sumformer.theorems.alberti_2023.plan import Plan
from sumformer.theorems.alberti_2023.sketch import Sketch
from sumformer.theorems.alberti_2023.term_sizes import TermSizes


class ErrorBound:
    """The bound for one plan, one arithmetic, one set of token counts; `own_token` as `ranges` were made."""

    def __init__(
        self,
        plan: Plan | MeshPlan | Sketch,
        arithmetic: Arithmetic,
        tokens: Tokens,
        cells: Cells,
        switches: Switches,
        ranges: Mapping[Reduce, Interval],
        own_token: bool = False,
    ) -> None:
        self.plan, self.arithmetic, self.tokens, self.cells = plan, arithmetic, tokens, cells
        self.own_among = tokens.maximum if own_token else None
        self.ranges = ranges
        self.u = arithmetic.u if switches.rounding else 0.0
        self.u_out = arithmetic.u_out if switches.rounding else 0.0
        self.ops = TrackedOperations(self.u, arithmetic.tiny, arithmetic.huge)
        self.sums = {s.reduction: s for s in plan.decomposition.sums}
        self.values: dict[Node, Tracked] = {}
        roundings = plan.roundings(arithmetic, self.u, tokens.maximum)
        self.sizes = TermSizes(cells, self.ops, KernelErrors(plan, switches), roundings, self.values)

    def total(self) -> float:
        """sup ‖f(X) − N(X)‖_∞; ∞ where a bound overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = self._total()
        return found if found == found else float("inf")

    def _total(self) -> float:
        for reduction, parts in self.sums.items():
            self.values[reduction] = self._reduction(parts)
        expression = self.plan.decomposition.expression
        quotients = Quotients(self.sums, self.sizes, self.plan.decomposition.expander, self.own_among)
        known: dict[Node, Tracked] = {}
        for part in postorder(expression):
            if isinstance(part, Binary) and part.op == "/":
                tied = quotients.bound(part)
                if tied is not None:
                    known[part] = tied
        result = evaluate(expression, self.ops, self.sizes.environment, known)
        error, largest = float(result.error.max()), float(result.magnitude.max())
        if self.u_out:
            error += self.u_out * (largest + error) + self.arithmetic.tiny_out
        return error * INFLATE if largest + error <= self.arithmetic.huge_out else float("inf")

    def _reduction(self, parts: ReducedSum) -> Tracked:
        errors = [self._component(terms, parts.reduction.kind) for terms in parts.components]
        return Tracked(self.ranges[parts.reduction], np.concatenate(errors, axis=-1))

    def _component(self, terms: tuple[Term, ...], kind: str) -> FloatArray:
        """The error of one coordinate of a reduction over the x-cells, (cells, 1)."""
        approximation = self._approximation(terms)
        rounding, size = np.zeros_like(approximation), np.zeros_like(approximation)
        for term in terms:
            a, b = self.sizes.own(term.own_node), self.sizes.channel(term.channel)
            largest = float(b.magnitude.max())
            value, rounded = self.sizes.of(term, float(b.error.max()) / max(largest, 1e-300), largest, largest)
            if not np.isfinite(rounded) or not np.isfinite(a.error).all():
                return np.full_like(approximation, np.inf)
            rounding += largest * (a.magnitude * rounded + a.error * (value + rounded))
            size += largest * (a.magnitude + a.error) * (value + rounded)
        count = 1 if kind == "mean" else self.tokens.maximum
        if not bool(
            np.all(size <= self.arithmetic.huge / (16 * count))
        ):  # a sum, or what is taken from it, may overflow
            return np.full_like(approximation, np.inf)
        rounding += 1.01 * (len(terms) + 2) * self.u * size
        if self.u:
            rounding += 4 * len(terms) * self.arithmetic.tiny  # products a_t V_t and their sum may underflow
        return self._over_tokens(kind, approximation, rounding, size) * INFLATE

    def _over_tokens(self, kind: str, approximation: FloatArray, rounding: FloatArray, size: FloatArray) -> FloatArray:
        """From the error of a mean to that of the reduction; the count is rounded once, each operation once more."""
        low, high = float(self.tokens.minimum), float(self.tokens.maximum)
        if kind == "mean":
            return approximation + rounding
        if kind == "sum":
            return high * (approximation + rounding + 2.1 * self.u * size)
        if kind == "sum_others":
            return (high - 1) * approximation + (high + 1) * (rounding + 4.1 * self.u * size)
        share = (low + 1) / (low - 1)
        return approximation + share * (rounding + 8.2 * self.u * size)

    def _approximation(self, terms: tuple[Term, ...]) -> FloatArray:
        """Σ over (channel, kernels) of sup|K − K̃| · sup_y |b Σ_t a_t p_t|."""
        total = np.zeros((self.cells.x.shape[0], 1))
        groups: dict[tuple[Node, tuple[Node, ...]], list[Term]] = {}
        for term in terms:
            groups.setdefault((term.channel, term.kernels), []).append(term)
        for (channel, _), members in groups.items():
            error = self.sizes.kernels.absolute(members[0])
            if error:
                mixed = Interval(0.0, 0.0)
                for t in members:
                    mixed = mixed + self.sizes.own(t.own_node).range * self.cells.polynomial(t.polynomial)
                factor = self.sizes.channel(channel).range[:, 0][None, :]
                total += error * (mixed * factor).abs_upper().max(axis=1, keepdims=True)
        return total
