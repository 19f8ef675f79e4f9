"""|f(X) − N(X)| ≤ bound, for every X in the box and every number of tokens asked for.

The target's own tree is evaluated in tracked arithmetic (exact range, error) over cells of x; what a reduction
contributes is bounded from its decomposition Σ_t a_t(x) · mean_k b(x_k) p_t(v_k) K(x, x_k):
  approximation   Σ over kernels of  sup|K − K̃| · sup_y |b Σ_t a_t p_t|
  rounding        |a_t| · b_max · ‖p_t‖₁ · S · δ,  S = Σ|A_{αβ}|, δ all relative roundings on the way, plus that of a_t
A quotient of two reductions over one kernel K > 0 (a normalised kernel) is bounded as a whole, because its parts' errors
are tied: with η = sup|K̃ − K|/K,  |f − S| ≤ η/(1−η) · diam_y(g)/2,  g = Σ_t (a_t/a) p_t.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import expm1, prod

import numpy as np

from sumformer.algebra.interval import Interval
from sumformer.algebra.interval_operations import IntervalOperations
from sumformer.algebra.rounding import FloatArray
from sumformer.algebra.tracked import INFLATE, Tracked, TrackedOperations
from sumformer.errors import DomainError
from sumformer.nn.token_sum import levels
from sumformer.targets import Binary, Const, Node, Reduce, postorder, to_source
from sumformer.targets.domain import Tokens
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.decomposition import ReducedSum, Term
from sumformer.theorems.alberti_2023.plan import Plan


@dataclass(frozen=True)
class Arithmetic:
    """How the network computes: unit roundoffs inside and outside, underflow threshold, and the summation tree."""

    name: str
    u: float
    u_out: float
    tiny: float
    dtype: str
    group: int


ARITHMETICS = {
    "float64": Arithmetic("float64", 2.0**-53, 0.0, 2.0**-1022, "float64", 1024),
    "float32": Arithmetic("float32", 2.0**-24, 0.0, 2.0**-126, "float32", 32),
    "mixed": Arithmetic("mixed", 2.0**-53, 2.0**-24, 2.0**-1022, "float64", 1024),
}


@dataclass(frozen=True)
class Switches:
    """What is counted: everything, or less, to tell the terms of a certificate apart."""

    remainder: bool = True
    dropped: bool = True
    rounding: bool = True


class ErrorBound:
    """The bound for one plan, one arithmetic, one set of token counts."""

    def __init__(self, plan: Plan, arithmetic: Arithmetic, tokens: Tokens, cells: Cells, switches: Switches) -> None:
        self.plan, self.arithmetic, self.tokens, self.cells, self.switches = plan, arithmetic, tokens, cells, switches
        self.u = arithmetic.u if switches.rounding else 0.0
        self.ops = TrackedOperations(self.u, arithmetic.tiny)
        self.box = plan.decomposition.expander.box
        self.sums = {s.reduction: s for s in plan.decomposition.sums}
        self.values: dict[Node, Tracked] = {}

    def total(self) -> float:
        """sup ‖f(X) − N(X)‖_∞."""
        for reduction, parts in self.sums.items():
            self.values[reduction] = self._reduction(parts)
        expression = self.plan.decomposition.expression
        known: dict[Node, Tracked] = {}
        for part in postorder(expression):
            if isinstance(part, Binary) and part.op == "/":
                tied = self._quotient(part)
                if tied is not None:
                    known[part] = tied
        result = evaluate(expression, self.ops, self.environment, known)
        error = float(result.error.max())
        if self.switches.rounding and self.arithmetic.u_out:
            error += self.arithmetic.u_out * (float(result.magnitude.max()) + error)
        return error * INFLATE

    @property
    def environment(self) -> Environment[Tracked]:
        return Environment(x=Tracked(self.cells.x, np.zeros(self.cells.x.shape)), reduce=self.values.__getitem__)

    def own(self, node: Node) -> Tracked:
        """A value of the own token over the x-cells, (cells, 1)."""
        value = evaluate(node, self.ops, self.environment)
        shape = (self.cells.x.shape[0], 1)
        return Tracked(value.range.broadcast_to(shape), np.broadcast_to(value.error, shape))

    # ---- one reduction

    def _reduction(self, parts: ReducedSum) -> Tracked:
        reduction = parts.reduction
        mean_range = self._body_range(reduction)
        errors = [self._component(terms, reduction.kind) for terms in parts.components]
        error = np.concatenate(errors, axis=-1)
        low, high = self.tokens.minimum, self.tokens.maximum
        if reduction.kind == "sum":
            return Tracked(mean_range * Interval(float(low), float(high)), error)
        if reduction.kind == "sum_others":
            return Tracked(mean_range * Interval(float(low - 1), float(high - 1)), error)
        return Tracked(mean_range, error)

    def _body_range(self, reduction: Reduce) -> Interval:
        """The hull of the body over all y, for every x-cell: where a mean of it lies."""

        def inner(node: Reduce) -> Interval:
            value = self.values[node].range
            return Interval(value.lo[:, None], value.hi[:, None])

        x, y = self.cells.x[:, None], self.cells.y[None, :]
        body = evaluate(reduction.body, IntervalOperations(), Environment(x=x, y=y, reduce=inner))
        if not bool(np.all(body.defined)):
            raise DomainError(
                f"{to_source(reduction.body)} may leave its domain on the box {self.box}", to_source(reduction.body)
            )
        shape = (x.shape[0], y.shape[1], reduction.width)
        body = body.broadcast_to(shape)
        return Interval(body.lo.min(axis=1), body.hi.max(axis=1))

    def _component(self, terms: tuple[Term, ...], kind: str) -> FloatArray:
        """The error of one coordinate of a reduction over the x-cells, (cells, 1)."""
        approximation = self._approximation(terms)
        rounding, size = np.zeros_like(approximation), np.zeros_like(approximation)
        for term in terms:
            a = self.own(term.own_node)
            b = self.channel(term.channel)
            mass = sum(float(abs(c)) for _, c in term.polynomial) * INFLATE
            value = b.magnitude.max() * mass * (self._kernel_maximum(term) + self._kernel_error(term))
            relative = self._relative_roundings(term, float(b.error.max() / max(b.magnitude.max(), 1e-300)))
            rounded = b.magnitude.max() * mass * self._mass(term) * relative
            rounding += a.magnitude * rounded + a.error * (value + rounded)
            size += (a.magnitude + a.error) * (value + rounded)
        rounding += 1.01 * (len(terms) + 2) * self.u * size
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
        return approximation + share * (rounding + 6.2 * self.u * size)

    def _approximation(self, terms: tuple[Term, ...]) -> FloatArray:
        """Σ over (channel, kernels) of sup|K − K̃| · sup_y |b Σ_t a_t p_t|."""
        total = np.zeros((self.cells.x.shape[0], 1))
        groups: dict[tuple[Node, tuple[Node, ...]], list[Term]] = {}
        for term in terms:
            groups.setdefault((term.channel, term.kernels), []).append(term)
        for (channel, _), members in groups.items():
            error = self._kernel_error(members[0])
            if error:
                mixed = sum((self._own_interval(t) * self.cells.polynomial(t.polynomial) for t in members), Interval(0.0, 0.0))
                factor = self.channel(channel).range[:, 0][None, :]
                total += error * (mixed * factor).abs_upper().max(axis=1, keepdims=True)
        return total

    def _own_interval(self, term: Term) -> Interval:
        return self.own(term.own_node).range

    # ---- kernels

    def _kernel_error(self, term: Term) -> float:
        """sup |Π K_g − K̃| = Π(max + e_g) − Π max, plus what was left out."""
        if not term.kernels:
            return 0.0
        tops = [max(abs(r) for r in self.plan.kernels[k].interpolant.range) for k in term.kernels]
        errors = [self._single_error(k) for k in term.kernels]
        grown = prod(t + e for t, e in zip(tops, errors, strict=True)) - prod(tops) if any(errors) else 0.0
        if len(errors) == 1:
            grown = errors[0]
        return max(grown, 0.0) * (1 + 1e-9) + prod(tops) * (1e-15 if any(errors) and len(errors) > 1 else 0.0) + self._left_out(term)

    def _kernel_maximum(self, term: Term) -> float:
        return prod(max(abs(r) for r in self.plan.kernels[k].interpolant.range) for k in term.kernels)

    def _single_error(self, kernel: Node) -> float:
        plan = self.plan.kernels[kernel]
        remainder = plan.interpolant.remainder if self.switches.remainder else 0.0
        return (remainder + (plan.truncation.dropped if self.switches.dropped else 0.0)) * INFLATE

    def _left_out(self, term: Term) -> float:
        return self.plan.products[term.kernels].left_out if self.switches.dropped else 0.0

    def _relative_error(self, term: Term) -> float:
        """η = sup |K̃ − K| / K for K > 0."""
        if not term.kernels:
            return 0.0
        bottoms = [self.plan.kernels[k].interpolant.range[0] for k in term.kernels]
        parts = [self._single_error(k) / low for k, low in zip(term.kernels, bottoms, strict=True)]
        return (expm1(sum(parts)) + self._left_out(term) / prod(bottoms)) * INFLATE

    def _mass(self, term: Term) -> float:
        """S = Π_g Σ|A_g|."""
        return prod(float(np.abs(self.plan.kernels[k].truncation.coefficients).sum()) for k in term.kernels) * INFLATE

    # ---- rounding

    @cached_property
    def _table_errors(self) -> FloatArray:
        """τ_{c,k}: error of T_k at a rounded, clamped argument: k²·(argument) + 3u·k(k−1)/2·1.1 (recurrence)."""
        k = np.arange(512.0)
        rows = []
        for centre, radius in zip(self.box.centre, self.box.radius, strict=True):
            inexact = 0.0 if self.ops._representable(centre) else 2.1 * float(abs(centre) / radius)
            rows.append(k**2 * self.u * (4.1 + inexact) + 1.65 * self.u * k * (k - 1))
        table = np.stack(rows)
        return table

    def _relative_roundings(self, term: Term, channel_error: float) -> float:
        """δ: all relative errors on the way from the tokens to V_t, summed and exponentiated."""
        if not self.u:
            return 0.0
        tau = self._table_errors
        top = [max(g[c] for g, _ in term.polynomial) for c in range(self.box.d)]
        covered = {c for k in term.kernels for c in self.plan.kernels[k].coordinates}
        relative = channel_error + sum(float(tau[c, top[c]]) for c in range(self.box.d) if c not in covered)
        roundings = levels(self.tokens.maximum, self.arithmetic.group) * self.arithmetic.group + self.box.d + 12
        roundings += sum(2 ** sum(g > 0 for g in gamma) for gamma, _ in term.polynomial)
        for kernel in term.kernels:
            plan = self.plan.kernels[kernel]
            weights = np.abs(plan.truncation.coefficients)
            k = len(plan.coordinates)
            weighted = 0.0
            for axis in range(2 * k):
                c = plan.coordinates[axis % k]
                offset = 0 if axis < k else top[c]
                error = tau[c, offset : offset + weights.shape[axis]]
                others = tuple(i for i in range(2 * k) if i != axis)
                weighted += float((weights.sum(axis=others) * error).sum())
            relative += 1.02 * weighted / max(float(weights.sum()), 1e-300)
            roundings += sum(plan.truncation.matrix().shape) + 2
        worst = float(tau[:, : max(top) + max([0, *(self.plan.kernels[k].degree for k in term.kernels)]) + 1].max())
        if worst > 0.005:
            return float("inf")
        return expm1((relative + 1.01 * roundings * self.u) * 1.001) * INFLATE

    def channel(self, factor: Node) -> Tracked:
        """b over the y-cells, (cells, 1)."""
        y = Tracked(self.cells.y, np.zeros(self.cells.y.shape))
        value = evaluate(factor, self.ops, Environment(y=y))
        shape = (self.cells.y.shape[0], 1)
        return Tracked(value.range.broadcast_to(shape), np.broadcast_to(value.error, shape))

    # ---- normalised kernels

    def _quotient(self, node: Binary) -> Tracked | None:
        """num/den over one shared kernel, bounded as a whole; None when the pattern does not fit."""
        if not (isinstance(node.left, Reduce) and isinstance(node.right, Reduce)) or node.right.width != 1:
            return None
        if node.left.kind != node.right.kind:
            return None
        bottom = self.sums[node.right].components[0]
        tops = self.sums[node.left].components
        if len(bottom) != 1 or any(index != (0,) * self.box.d for index, _ in bottom[0].polynomial):
            return None
        base = bottom[0]
        if any((t.channel, t.kernels) != (base.channel, base.kernels) for terms in tops for t in terms):
            return None
        b = self.channel(base.channel)
        lowest = float(b.range.lo.min())
        kernel_low = prod(self.plan.kernels[k].interpolant.range[0] for k in base.kernels)
        positive = all(self.plan.kernels[k].interpolant.range[0] > 0 for k in base.kernels)
        own = self.own(base.own_node)
        if lowest <= 0 or not positive or bool(np.any(own.range.contains(0.0))) or base.polynomial[0][1] == 0:
            return None
        eta = self._relative_error(base)
        if not eta < 0.5:
            return None
        others = node.left.kind.endswith("others")
        spread = 2.0 * (lowest + float(b.magnitude.max())) / lowest if others else 1.0
        relative_b = float((b.error[:, 0] / b.range.lo[:, 0]).max()) * INFLATE
        least = kernel_low * (1 - eta) / INFLATE
        scale = float(abs(base.polynomial[0][1]))
        den = self._relative_size(base, own, relative_b) * spread / (least * scale)
        columns = [
            self._tied_component(terms, base, relative_b, eta, least * scale, spread, den) for terms in tops
        ]
        if any(c is None for c in columns):
            return None
        return self.ops.cat([c for c in columns if c is not None])

    def _tied_component(
        self, terms: tuple[Term, ...], base: Term, relative_b: float, eta: float, least: float, spread: float, den: FloatArray
    ) -> Tracked | None:
        cells = (self.cells.x.shape[0], 1)
        g = Interval(np.zeros((cells[0], self.cells.y.shape[0])), np.zeros((cells[0], self.cells.y.shape[0])))
        num = np.zeros(cells)
        scale = base.polynomial[0][1]
        for term in terms:
            ratio = self._own_ratio(term, base)
            own = self.own(term.own_node)
            g = g + ratio.range * self.cells.polynomial(term.polynomial) * Interval.from_fraction(1 / scale)
            with np.errstate(divide="ignore", invalid="ignore"):
                num += ratio.magnitude * self._relative_size(term, own, relative_b) * spread / least
        value = Interval(g.lo.min(axis=1, keepdims=True), g.hi.max(axis=1, keepdims=True))
        if not bool(np.all(den < 0.5)) or not bool(np.all(np.isfinite(num))):
            return None
        approximation = eta / (1 - eta) * (value.hi - value.lo) / 2 * INFLATE
        rounding = (num + (value.abs_upper() + approximation) * den) / (1 - den) * INFLATE
        rounding += 2 * self.u * (value.abs_upper() + approximation + rounding)
        return Tracked(value, approximation + rounding)

    def _own_ratio(self, term: Term, base: Term) -> Tracked:
        """a_t / a, factors cancelled exactly."""
        powers = dict(term.own)
        for atom, e in base.own:
            powers[atom] = powers.get(atom, 0) - e
        monomial = frozenset((atom, e) for atom, e in powers.items() if e)
        return self.own(self.plan.decomposition.expander.node({monomial: base.polynomial[0][1] ** 0}))

    def _relative_size(self, term: Term, own: Tracked, relative_b: float) -> FloatArray:
        """|computed − exact| of a_t V_t, relative to |a_t| · mean b: kernels' mass times roundings, a_t's own included."""
        mass = sum(float(abs(c)) for _, c in term.polynomial) * INFLATE
        value = mass * (self._kernel_maximum(term) + self._kernel_error(term))
        rounded = mass * self._mass(term) * self._relative_roundings(term, relative_b)
        with np.errstate(divide="ignore", invalid="ignore"):
            smallest = np.where(own.range.lo > 0, own.range.lo, np.where(own.range.hi < 0, -own.range.hi, 0.0))
            relative_a = np.where(own.error == 0, 0.0, own.error / smallest)
        return (rounded + (relative_a + 8.2 * self.u) * (value + rounded)) * (1 + relative_a) * INFLATE


def unit_channel() -> Node:
    """b = 1."""
    from fractions import Fraction

    return Const(Fraction(1))
