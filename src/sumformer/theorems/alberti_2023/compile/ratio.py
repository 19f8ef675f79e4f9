"""q = Σ_j b K g / Σ_j b K = e^{log(num + c·den) − log den} − c,  b K > 0,  c = 1 − min g:  two logarithms, one exp.

With weights w_j = b K̃ > 0 (K̃ within η < 1 of K, relatively) q is a mean of g, so q ∈ [min g, max g] and
  den ∈ [min bK (1−η), max bK (1+η)],   num + c·den = den·(q + c) ∈ [min den, max den·(1 + max g − min g)].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sumformer.algebra.interval import Interval
from sumformer.algebra.interval_operations import IntervalOperations
from sumformer.gadgets.elementary import EXP, LOG, RECIPROCAL
from sumformer.targets import Environment, Node, Reduce, evaluate, to_source
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.compile.functional import Functional
from sumformer.theorems.alberti_2023.compile.program import Program
from sumformer.theorems.alberti_2023.components import has_reduction
from sumformer.theorems.alberti_2023.decomposition import Term
from sumformer.theorems.alberti_2023.kernel_errors import KernelErrors
from sumformer.theorems.alberti_2023.plan import Plan

STEEP = 6.0  # max/min of a denominator up to which one reciprocal and one product are cheaper
_SLACK = 1e-9


@dataclass(frozen=True)
class SharedKernel:
    """The denominator without its own factor, the numerator's terms with theirs divided by it, and what is known."""

    denominator: Term
    numerator: tuple[tuple[Node, Term], ...]
    den_range: tuple[float, float]
    g_range: tuple[float, float]
    eta: float

    @staticmethod
    def find(
        plan: Plan, cells: Cells, errors: KernelErrors, top: Reduce, c: int, bottom: Reduce
    ) -> SharedKernel | None:
        sums = {s.reduction: s.components for s in plan.decomposition.sums}
        terms, below = sums[top][c], sums[bottom][0]
        zero = (0,) * plan.decomposition.expander.box.d
        if len(below) != 1 or [index for index, _ in below[0].polynomial] != [zero]:
            return None
        base = below[0]
        if any((t.channel, t.kernels) != (base.channel, base.kernels) for t in terms):
            return None
        factor = float(base.polynomial[0][1])
        b = evaluate(base.channel, IntervalOperations(), Environment(y=cells.y))
        low, least, eta = float(b.lo.min()), errors.minimum(base), errors.relative(base) if base.kernels else 0.0
        if factor <= 0 or low <= 0 or least <= 0 or not eta < 0.5:
            return None
        numerator = tuple((_ratio(plan, t, base), t) for t in terms)
        if any(has_reduction(node) for node, _ in numerator):
            return None
        g = _integrand(cells, numerator, Fraction(1) / base.polynomial[0][1])
        den = (factor * low * least * (1 - eta), factor * float(b.hi.max()) * errors.maximum(base) * (1 + eta))
        return SharedKernel(
            base, numerator, (den[0] * (1 - _SLACK), den[1] * (1 + _SLACK)), (float(g.lo.min()), float(g.hi.max())), eta
        )


def quotient(program: Program, num: Functional, den: Functional, shared: SharedKernel, share: float) -> Functional:
    """The quotient; `share` is what part of the mean is left where the own token is left out."""
    low, high = shared.den_range[0] * share, shared.den_range[1]
    g_low, g_high = shared.g_range
    because = {"channel": to_source(shared.denominator.channel), "eta": shared.eta}
    because |= {"kernels": [to_source(k) for k in shared.denominator.kernels], "integrand": list(shared.g_range)}
    bottom = program.sum(den, (low, high), because, name="den")
    if high <= STEEP * low:
        return program.product(num, program.function(RECIPROCAL, bottom, "1/den"), name="num/den")
    c = math.nextafter(1.0 - g_low, math.inf)  # rounded so that q + c is not below 1
    most = (c + g_high) * (1 + 2.0**-50)
    top = program.sum(num + den.scaled(c), (low, high * most), because | {"c": c}, name="num + c den")
    difference = program.function(LOG, top, "log num") + (-program.function(LOG, bottom, "log den"))
    logarithm = program.sum(difference, (-_SLACK, math.log(most) + _SLACK), because, name="log q")
    return program.function(EXP, logarithm, "q").shifted(-c)


def _ratio(plan: Plan, term: Term, base: Term) -> Node:
    """a_t / a, factors cancelled exactly."""
    powers = dict(term.own)
    for atom, e in base.own:
        powers[atom] = powers.get(atom, 0) - e
    monomial = frozenset((atom, e) for atom, e in powers.items() if e)
    return plan.decomposition.expander.node({monomial: Fraction(1)})


def _integrand(cells: Cells, numerator: tuple[tuple[Node, Term], ...], factor: Fraction) -> Interval:
    """g(x, y) over the cells."""
    shape = (cells.x.shape[0], cells.y.shape[0])
    g = Interval(np.zeros(shape), np.zeros(shape))
    for node, term in numerator:
        own = evaluate(node, IntervalOperations(), Environment(x=cells.x))
        g = g + own.broadcast_to((shape[0], 1)) * cells.polynomial(term.polynomial) * Interval.from_fraction(factor)
    return g
