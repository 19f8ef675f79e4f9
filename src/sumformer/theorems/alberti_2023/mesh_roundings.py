"""δ_t: every relative rounding on the way from the tokens to V_t(x) over a mesh, weighed by Λ^{2k} max|K|.

A weight ℓ_a(r) is a product of w − 1 sums r + integer, r known exactly, and of a stored constant: 2w + 2 roundings.
Then, in a row: p(v) b(y) and the multiplicity, the weights of y, the sum over a group of tokens and over the w^k places
of the stencil, over groups, over parts that are merged, the division by the count, for each kernel the sum over all
nodes, the weights of x, the sum over w^k nodes. Where tokens lie is part of K̂ (`mesh_kernel.py`); p is evaluated at
rounded v, as ever.
"""

from __future__ import annotations

from functools import cached_property
from math import expm1, inf, prod
from typing import TYPE_CHECKING

from sumformer.algebra.rounding import FloatArray
from sumformer.algebra.tracked import INFLATE
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.decomposition import Term
from sumformer.theorems.alberti_2023.roundings import LARGEST_TABLE_ERROR, MAX_DEGREE, table_errors

if TYPE_CHECKING:
    from sumformer.theorems.alberti_2023.mesh_plan import MeshPlan

GROUP = 2**18  # tokens that are added in any order


class MeshRoundings:
    """Relative rounding bounds for the terms of one plan; all 0 when `u` is."""

    def __init__(self, plan: MeshPlan, arithmetic: Arithmetic, u: float, n_max: int) -> None:
        self.plan, self.arithmetic, self.u, self.n_max = plan, arithmetic, u, n_max
        self.box: Box = plan.decomposition.expander.box

    @cached_property
    def table(self) -> FloatArray:
        """τ_{c,k} for every coordinate c and degree k."""
        return table_errors(self.box, self.arithmetic, self.u)

    def growth(self, term: Term) -> float:
        """By how much numbers on the way may exceed what is made of them."""
        return prod(self.plan.kernels[k].growth for k in term.kernels)

    def relative(self, term: Term, channel_error: float, scale: float) -> float:
        """δ_t, `channel_error` the relative error of b; infinite where nothing can be claimed.

        Underflows cost `tiny` each, which is set against numbers of size `scale`.
        """
        if not self.u:
            return 0.0
        d = self.box.d
        top = [max(gamma[c] for gamma, _ in term.polynomial) for c in range(d)]
        if max(top) >= MAX_DEGREE or not float(self.table[:, : max(top) + 1].max()) <= LARGEST_TABLE_ERROR:
            return inf
        relative = channel_error + sum(float(self.table[c, top[c]]) for c in range(d))
        groups = -(-self.n_max // GROUP)
        roundings = len(term.polynomial) + d + 6 + min(self.n_max, GROUP) + groups + 4 + self.arithmetic.merges
        places, nodes, spread = 1, 1, 1.0
        for plan in (self.plan.kernels[k] for k in term.kernels):
            k, w = len(plan.coordinates), plan.choice.width
            places, nodes, spread = places * w**k, nodes + plan.nodes, spread * plan.spread
            roundings += 2 * k * (2 * w + 3) + 2 + k * (3 * w + 6)  # the last: the own term alone
            relative += plan.sum_error(self.u)
        roundings += 2 * places + 4
        lost = 64 * (roundings + places + nodes) * spread * self.growth(term) * self.arithmetic.tiny
        relative += lost / scale if scale else inf
        if not relative + 1.01 * roundings * self.u <= 1.0:
            return inf
        return expm1((relative + 1.01 * roundings * self.u) * 1.001) * INFLATE
