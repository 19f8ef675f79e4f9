"""δ_t: every relative rounding on the way from the tokens to V_t(x), weighed by the coefficients it passes through.

T_k at a rounded, clamped argument t̂ = fl(fl(z − ĉ)/r), ĉ the stored centre: |t̂ − t| ≤ 4.1u + 1.01|ĉ − c|/r + 4 tiny/r
(tokens and differences that underflow), and |T_k'| ≤ k². Nothing is claimed where c, r or 1/r is not a normal number.
The recurrence T_{k+1} = 2t T_k − T_{k−1} adds ≤ 3.3u per step, carried on by U_m, |U_m| ≤ m + 1. Together
  τ_k ≤ k²·|t̂ − t| + 1.65u·k(k−1).
The rest are counts of roundings in a row: the tree's levels, the division by the count, p ⊛ Σ, both contractions.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from math import expm1, inf
from typing import TYPE_CHECKING

import numpy as np

from sumformer.algebra.rounding import FloatArray
from sumformer.algebra.tracked import INFLATE
from sumformer.nn.token_sum import levels
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.decomposition import Term

if TYPE_CHECKING:
    from sumformer.theorems.alberti_2023.plan import Plan

MAX_DEGREE = 1024
LARGEST_TABLE_ERROR = 0.005  # products of (1 + τ) are linearised below this; beyond it nothing is claimed
UNBOUNDED = (
    f"polynomials of degree {MAX_DEGREE} or more, in a box as narrow as this for its distance from 0, or with numbers "
    "on the way that are beyond those of the arithmetic,"
)


class Roundings:
    """Relative rounding bounds for the terms of one plan; all 0 when `u` is."""

    def __init__(self, plan: Plan, arithmetic: Arithmetic, u: float, n_max: int) -> None:
        self.plan, self.arithmetic, self.u, self.n_max = plan, arithmetic, u, n_max
        self.box: Box = plan.decomposition.expander.box

    @cached_property
    def table(self) -> FloatArray:
        """τ_{c,k} for every coordinate c and degree k."""
        return table_errors(self.box, self.arithmetic, self.u)

    def growth(self, term: Term) -> float:
        """By how much numbers on the way may exceed what is made of them."""
        return 1.0

    def relative(self, term: Term, channel_error: float, scale: float) -> float:
        """δ_t, `channel_error` the relative error of b; infinite where nothing can be claimed.

        Underflows cost `tiny` each, which is set against numbers of size `scale`.
        """
        if not self.u:
            return 0.0
        tau, d = self.table, self.box.d
        top = [max(gamma[c] for gamma, _ in term.polynomial) for c in range(d)]
        plans = [self.plan.kernels[k] for k in term.kernels]
        reach = max(top) + max([0, *(p.degree for p in plans)])
        if reach >= MAX_DEGREE or not float(tau[:, : reach + 1].max()) <= LARGEST_TABLE_ERROR:
            return float("inf")
        covered = {c for p in plans for c in p.coordinates}
        relative = channel_error + sum(float(tau[c, top[c]]) for c in range(d) if c not in covered)
        group = self.arithmetic.group
        tree = self.n_max if self.n_max <= group else levels(self.n_max, group) * group
        roundings = tree + self.arithmetic.merges + d + 12
        roundings += sum(2 ** sum(g > 0 for g in gamma) for gamma, _ in term.polynomial)
        for plan in plans:
            weights = np.abs(plan.truncation.coefficients)
            k = len(plan.coordinates)
            weighted = 0.0
            for axis in range(2 * k):
                c = plan.coordinates[axis % k]
                offset = 0 if axis < k else top[c]  # p ⊛ Σ reads y-features up to `top` degrees higher
                column = weights.sum(axis=tuple(i for i in range(2 * k) if i != axis))
                weighted += float((column * tau[c, offset : offset + weights.shape[axis]]).sum())
            relative += 1.05 * weighted / max(float(weights.sum()), 1e-300)
            roundings += sum(plan.truncation.matrix().shape) + 2
        products = sum(plan.truncation.matrix().size for plan in plans)
        relative += 8 * (roundings + products) * self.arithmetic.tiny / scale if scale else float("inf")
        if not relative + 1.01 * roundings * self.u <= 1.0:
            return float("inf")
        return expm1((relative + 1.01 * roundings * self.u) * 1.001) * INFLATE


def table_errors(box: Box, arithmetic: Arithmetic, u: float) -> FloatArray:
    """τ_{c,k} ≥ |computed T_k − T_k| for every coordinate c of the box and degree k < MAX_DEGREE."""
    k = np.arange(float(MAX_DEGREE))
    rows = [
        k**2 * e + 1.65 * u * k * (k - 1) if e < inf else np.full(k.shape, inf)
        for e in argument_errors(box, arithmetic, u)
    ]
    return np.stack(rows)


def argument_errors(box: Box, arithmetic: Arithmetic, u: float) -> list[float]:
    """|t̂ − t| for every coordinate of the box; ∞ where nothing is claimed."""
    out = []
    for centre, radius in zip(box.centre, box.radius, strict=True):
        if not all(_storable(q, arithmetic) for q in (radius, 1 / radius, centre or radius)):
            out.append(inf)
            continue
        shift = 1.01 * float(abs(_stored(centre, arithmetic) - centre) / radius) if u else 0.0
        out.append(4.1 * u + shift + 4 * arithmetic.tiny / float(radius))
    return out


def _stored(value: Fraction, arithmetic: Arithmetic) -> Fraction:
    """As a number of the arithmetic, by way of float64."""
    nearest = float(value)
    return Fraction(float(np.float32(nearest)) if arithmetic.dtype == "float32" else nearest)


def _storable(value: Fraction, arithmetic: Arithmetic) -> bool:
    return 4 * arithmetic.tiny <= abs(value) <= arithmetic.huge / 4
