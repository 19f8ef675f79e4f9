"""Σ_k c_k T_{α_k}(x) Σ_{arrangements of B_k} Π_j T_{B_kj}(y_j) = Σ_t c'_t T_{α_t}(x) Π_i q_{β_ti}, q_β = Σ_j T_β(y_j).

T_a T_b = (T_{a+b} + T_{|a−b|})/2 in each coordinate. Float64, every rounding counted: |computed − exact| ≤ error_t.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from sumformer.algebra.orbit_sums import Degree, DegreeTable, IntArray, multiplicities, to_power_sums
from sumformer.algebra.rounding import FloatArray, fraction_bounds, sum_up, unit_roundoff, up
from sumformer.errors import InputError, ShapeError

_FLOOR: Final = 2.0**-800
"""What flows is taken for at least this: halved 150 times it still dwarfs what an underflow loses."""
_MOST_HALVINGS: Final = 150
_U: Final = unit_roundoff("float64")


@dataclass(frozen=True, eq=False)
class ChebyshevPowerSums:
    """Σ_t coefficients_t T_{own_t}(x) Π_i q_{factors_ti} over m others; a factor (0, …, 0) stands for none."""

    m: int
    own: IntArray
    """(terms, d)"""
    factors: IntArray
    """(terms, r, d), those that are not zero first"""
    coefficients: FloatArray
    """(terms,)"""
    errors: FloatArray
    """(terms,): |coefficient − exact| is at most this"""

    @property
    def betas(self) -> IntArray:
        """(d', d): the distinct β whose q_β occur."""
        d = self.factors.shape[2]
        used = self.factors.reshape(-1, d)
        return np.unique(used[used.any(axis=1)], axis=0)

    @property
    def coefficient_error(self) -> float:
        """Σ_t error_t m^{number of factors}: what the coefficients' rounding can change on [−1, 1]^{(m+1)·d}."""
        powers = np.array([fraction_bounds(self.m**k)[1] for k in range(self.factors.shape[1] + 1)])
        counts = self.factors.any(axis=2).sum(axis=1)
        with np.errstate(over="ignore"):
            return sum_up(up(self.errors * powers[counts]))


def chebyshev_power_sums(own: ArrayLike, others: ArrayLike, coefficients: ArrayLike, m: int) -> ChebyshevPowerSums:
    """Orbit sums over m others as a polynomial in q_β.

    own: (orbits, d) degrees of the own token; others: (orbits, ≤ m, d) degrees of the others, in any order, zero rows
    allowed and understood where there are fewer than m. The coefficient stands before the sum over the *different*
    arrangements of the degrees on the m others, as in a tensor with equal entries along the orbit.
    """
    alpha, B, c = _checked(own, others, coefficients, m)
    alpha, B, c = alpha[c != 0], B[c != 0], c[c != 0]
    table = DegreeTable(alpha.shape[1])
    own_numbers, parts = table.numbers(alpha), table.numbers(B)
    width = int(np.count_nonzero(parts, axis=1).max(initial=0))
    parts = -np.sort(-parts, axis=1)[:, :width]
    if width * alpha.shape[1] > _MOST_HALVINGS:
        raise InputError(f"chebyshev_power_sums: expected parts × d ≤ {_MOST_HALVINGS}, got {width} × {alpha.shape[1]}")
    repeated = np.array([float(t) for t in multiplicities(parts)])
    with np.errstate(over="ignore", invalid="ignore"):
        # The bounds are themselves rounded, at most 2²⁴ · 150 times each: the surplus 2⁻²⁰ covers that, here for what
        # flows and below for the error. c/repeated is rounded at most twice.
        flow = np.maximum(np.abs(c), _FLOOR) / repeated * (1 + 2.0**-20)
        start = np.stack([c / repeated, flow, 2 * _U * flow], axis=1)
        own_out, factors, values = to_power_sums(table, own_numbers, parts, start, m, _product)
        error = up(values[:, 2] * (1 + 2.0**-20))
    if not bool(np.isfinite(error).all()):
        raise InputError("chebyshev_power_sums: the coefficients overflow float64")
    vectors = table.array()
    return ChebyshevPowerSums(m, vectors[own_out], vectors[factors], values[:, 0], error)


def _product(a: Degree, b: Degree) -> list[tuple[Degree, float]]:
    """T_a T_b = 2^{−k} Σ T_{|a ± b|}, a sign for each of the k coordinates where neither is 0."""
    choices = [(p + q, abs(p - q)) if p and q else (p + q,) for p, q in zip(a, b, strict=True)]
    results: dict[Degree, float] = {}
    weight = 0.5 ** sum(len(choice) - 1 for choice in choices)
    for degree in itertools.product(*choices):
        results[degree] = results.get(degree, 0.0) + weight
    return list(results.items())


def _checked(
    own: ArrayLike, others: ArrayLike, coefficients: ArrayLike, m: int
) -> tuple[IntArray, IntArray, FloatArray]:
    alpha, B = np.asarray(own, dtype=np.int64), np.asarray(others, dtype=np.int64)
    c = np.asarray(coefficients, dtype=np.float64)
    where = "chebyshev_power_sums"
    if alpha.ndim != 2 or not alpha.shape[1]:
        raise ShapeError(where, "own of shape (orbits, d)", alpha.shape)
    if B.ndim != 3 or B.shape[::2] != alpha.shape:
        raise ShapeError(where, f"others of shape ({alpha.shape[0]}, parts, {alpha.shape[1]})", B.shape)
    if c.shape != alpha.shape[:1]:
        raise ShapeError(where, f"coefficients of shape ({alpha.shape[0]},)", c.shape)
    if (alpha < 0).any() or (B < 0).any():
        raise InputError(f"{where}: expected degrees ≥ 0, got a negative one")
    if not bool(np.isfinite(c).all()):
        raise InputError(f"{where}: expected finite coefficients, got NaN or inf")
    if m < 0:
        raise InputError(f"{where}: expected m ≥ 0 others, got {m}")
    return alpha, B, c
