"""Chebyshev interpolation on [−1, 1]^k, f ≈ Σ_α c_α Π_j T_{α_j}(x_j), with bounds that include the rounding.

Tensors of values and of coefficients have one axis per coordinate; an axis of length N + 1 means degree N.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from sumformer.algebra.interval import PI, Interval
from sumformer.algebra.interval_functions import cos, log
from sumformer.algebra.rounding import TINY, FloatArray, gamma, sum_up, unit_roundoff
from sumformer.errors import InputError, ShapeError

COSINE_ERROR: Final = 2.0**-49
"""Bound of |computed − exact| for the nodes and for every T_k(node) below; see `cosines`."""

GRID_BUDGET: Final = 4_000_000
_SLAB: Final = 1_000_000
_U: Final = unit_roundoff("float64")


def nodes(N: int) -> FloatArray:
    """x_i = cos((2i+1)π / (2(N+1))), i = 0 … N, decreasing, within COSINE_ERROR of the exact ones."""
    return cosines(N + 1)[2 * np.arange(N + 1) + 1]


def transform_matrix(N: int) -> FloatArray:
    """A_ki = (2 − [k=0])/(N+1) · T_k(x_i), so that c = A f(x)."""
    k, i = np.arange(N + 1)[:, None], np.arange(N + 1)[None, :]
    weights = np.where(k == 0, 1.0, 2.0) / (N + 1)
    return np.asarray(weights * cosines(N + 1)[(k * (2 * i + 1)) % (4 * (N + 1))])


def coefficients(values: ArrayLike, axes: Sequence[int] | None = None) -> FloatArray:
    """The coefficients of the interpolant of values at the nodes, along `axes` (all of them by default)."""
    tensor = np.asarray(values, dtype=np.float64)
    for axis in range(tensor.ndim) if axes is None else axes:
        tensor = _apply(transform_matrix(tensor.shape[axis] - 1), tensor, axis)
    return tensor


def coefficient_error(lengths: Sequence[int], bound: float, value_error: float = 0.0) -> float:
    """max |computed − exact| over the coefficients, for |values| ≤ bound known to within value_error.

    `lengths` are the lengths N_j + 1 of the axes transformed, in that order. One axis: with |Ã − A| ≤ δ entrywise and
    the largest absolute row sum L of Ã, e ↦ (L + (N+1)δ) e + ((N+1)δ + γ_{N+1} L) M and M ↦ L (1 + γ_{N+1}) M, in
    whatever order the dot products are summed.
    """
    if not (bound >= 0 and value_error >= 0):
        raise InputError(f"coefficient_error: expected bounds >= 0, got {bound} and {value_error}")
    error, magnitude = Interval.point(value_error), Interval.point(bound)
    for length in lengths:
        rows = Interval.point(max(sum_up(row) for row in np.abs(transform_matrix(length - 1))))
        # |w̃ T̃ − w T| ≤ w (COSINE_ERROR + 2 roundings) ≤ 2 · 2/(N+1) · COSINE_ERROR, times the N+1 entries of a row.
        entries = Interval.point(4 * COSINE_ERROR)
        rounding = Interval.point(gamma(length, _U))
        underflow = Interval.point(length * 2 * TINY)
        error = (rows + entries) * error + (entries + rounding * rows) * magnitude + underflow
        magnitude = rows * (1 + rounding) * magnitude + underflow
    return float(error.hi)


def evaluate(coeffs: ArrayLike, points: Sequence[ArrayLike]) -> FloatArray:
    """Σ c_α Π T_{α_j}(x_j) on the grid points[0] × points[1] × …, in plain float64."""
    tensor = np.asarray(coeffs, dtype=np.float64)
    if tensor.ndim != len(points):
        raise ShapeError("chebyshev.evaluate", f"coefficients with {len(points)} axes", tensor.shape)
    for axis, x in enumerate(points):
        at = np.atleast_1d(np.asarray(x, dtype=np.float64))
        basis = np.asarray(np.polynomial.chebyshev.chebvander(at, tensor.shape[axis] - 1), dtype=np.float64)
        tensor = _apply(basis, tensor, axis)
    return tensor


def sup_norm_bound(coeffs: ArrayLike, oversample: float = 8.0, budget: int = GRID_BUDGET) -> float:
    """An upper bound of max |p| on [−1, 1]^k, rounding included: the lesser of two.

    ℓ1: |p| ≤ Σ|c_α|, as |T_k| ≤ 1.
    Ehlich–Zeller: in one variable, ‖p‖ ≤ max over the M zeros of T_M of |p| / cos(πN/(2M)) for M > N. Axis by axis,
    ‖p‖ ≤ max over the grid / Π_j cos(πN_j/(2M_j)). M_j = oversample · N_j, less if the grid would exceed `budget`
    points; when even 2 N_j exceed it, ℓ1 alone.
    """
    tensor = np.asarray(coeffs, dtype=np.float64)
    if not bool(np.isfinite(tensor).all()):
        raise InputError("sup_norm_bound: expected finite coefficients, got NaN or inf")
    if not oversample >= 2:
        raise InputError(f"sup_norm_bound: expected oversample >= 2, got {oversample}")
    # The longest axis first: it is the one cut into slabs. Axes of degree 0 have nothing to bound.
    tensor = np.atleast_1d(tensor.squeeze())
    tensor = tensor.transpose(np.argsort(tensor.shape)[::-1])
    mass = sum_up(np.abs(tensor))
    degrees = [length - 1 for length in tensor.shape]
    counts = _grid(degrees, oversample, budget)
    if counts is None or mass == 0 or degrees == [0]:
        return mass
    # Entries T̃ with |T̃ − T| ≤ δ and dot products of length N+1: each axis multiplies every term c_α by a factor
    # within (1 + δ)(1 + γ_{N+1}) of |T| ≤ 1, so a grid value errs by ≤ ‖c‖₁ (Π (1 + δ)(1 + γ) − 1), and underflows.
    growth, shrink = Interval.point(1.0), Interval.point(1.0)
    for N, M in zip(degrees, counts, strict=True):
        growth = growth * Interval.from_fraction(1 + Fraction(COSINE_ERROR)) * (1 + Interval.point(gamma(N + 1, _U)))
        shrink = shrink * cos(PI * Interval.from_fraction(Fraction(N, 2 * M)))
    underflow = Interval.from_fraction(Fraction(TINY) * 4 * tensor.size)
    error = Interval.point(mass) * (growth - 1) + underflow if math.isfinite(mass) else Interval(0.0, math.inf)
    peak = _grid_maximum(tensor, counts)
    bound = (Interval(0.0, peak) + error) / shrink
    return min(mass, float(bound.hi))


def monomial(k: int) -> tuple[Fraction, ...]:
    """xᵏ = 2^{1−k} Σ_j C(k, j) T_{k−2j}, the T_0 term halved: its exact Chebyshev coefficients, degrees 0 … k."""
    if k < 0:
        raise InputError(f"chebyshev.monomial: expected k >= 0, got {k}")
    exact = [Fraction(0)] * (k + 1)
    for j in range(k // 2 + 1):
        exact[k - 2 * j] = Fraction(2 * math.comb(k, j), 2**k)
    if k % 2 == 0:
        exact[0] /= 2
    return tuple(exact)


def ellipse_remainder(M: float, rho: float, N: int) -> float:
    """4 M ρ^{−N} / (ρ − 1), rounded up: the error of degree-N interpolation of f analytic, |f| ≤ M, inside E_ρ."""
    if not (M >= 0 and 1 < rho < math.inf and N >= 0):
        raise InputError(f"ellipse_remainder: expected M >= 0, rho > 1, N >= 0, got {M}, {rho}, {N}")
    if math.isinf(M):
        return math.inf
    ellipse = Interval.point(rho)
    return float((4 * Interval.point(M) / (ellipse**N * (ellipse - 1))).hi)


def lebesgue(N: int) -> float:
    """Λ_N ≤ (2/π) log(N+1) + 1, rounded up: the norm of interpolation at the nodes."""
    if N < 0:
        raise InputError(f"lebesgue: expected N >= 0, got {N}")
    return float((2 * log(Interval.from_fraction(N + 1)) / PI + 1).hi)


def cosines(n: int) -> FloatArray:
    """cos(mπ/(2n)), m = 0 … 4n − 1, within COSINE_ERROR = 16u.

    Folded to sin θ with |θ| ≤ π/2: θ has a relative error ≤ 3u, which moves sin θ by ≤ 3u |θ cos θ| < 2u; libm's sin
    errs by ≤ 4 ulp ≤ 8u.
    """
    m = np.arange(4 * n)
    folded = n - np.minimum(m, 4 * n - m)
    return np.asarray(np.sin(folded * np.pi / (2 * n)))


def _apply(matrix: FloatArray, tensor: FloatArray, axis: int) -> FloatArray:
    return np.moveaxis(np.tensordot(matrix, tensor, axes=(1, axis)), 0, axis)


def _grid(degrees: Sequence[int], oversample: float, budget: int) -> list[int] | None:
    """M_j per axis, M_j ≥ 2 N_j, at most `budget` points in all; None when there is no such grid."""
    for factor in np.linspace(oversample, 2.0, 49):
        counts = [max(1, math.ceil(factor * N)) for N in degrees]
        if math.prod(counts) <= budget:
            return counts
    return None


def _grid_maximum(coeffs: FloatArray, counts: Sequence[int]) -> float:
    """max |p| over the grid of Chebyshev zeros; the first axis in slabs, so the whole grid is never held."""
    bases = [
        cosines(M)[(np.arange(N)[None, :] * (2 * np.arange(M)[:, None] + 1)) % (4 * M)]
        for N, M in zip(coeffs.shape, counts, strict=True)
    ]
    step = max(1, _SLAB // math.prod(counts[1:]))
    tensor = coeffs
    with np.errstate(all="ignore"):
        for axis in range(1, coeffs.ndim):
            tensor = _apply(bases[axis], tensor, axis)
        rows = tensor.reshape(coeffs.shape[0], -1)
        slabs = [np.abs(bases[0][i : i + step] @ rows).max() for i in range(0, counts[0], step)]
    peak = float(np.max(slabs))
    return math.inf if math.isnan(peak) else peak  # NaN: ∞ − ∞ after an overflow
