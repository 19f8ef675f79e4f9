"""Chebyshev points and sup-norms of polynomials Σ_k c_k T_k on [−1, 1]^V, in float64 with a-priori rounding bounds."""

from __future__ import annotations

import math

import numpy as np
from flint import arb, ctx

from sumformer.certificates.checker.interval import Floats, Interval, enclose

GRID_POINTS = 4e7
_ENTRY = 2.0**-52  # absolute error of a stored cosine


def cosines(count: int) -> Floats:
    """cos(π m/(2·count)) for 0 ≤ m < 4·count, each within 2^−52 (balls, then rounded)."""
    with ctx.workprec(80):
        step = arb.pi() / (2 * count)
        return np.array([float((step * m).cos().mid()) for m in range(4 * count)])


def nodes(count: int) -> Interval:
    """Enclosures of the zeros of T_count, cos((2i+1)π/(2·count))."""
    balls = [(arb.pi() * (2 * i + 1) / (2 * count)).cos() for i in range(count)]
    return enclose(np.array([float(b.lower()) for b in balls]), np.array([float(b.upper()) for b in balls]))


def values_at_nodes(degree: int, count: int) -> Floats:
    """(degree+1, count): T_k at the zeros of T_count; the angle k(2i+1)π/(2·count) is reduced exactly."""
    k, i = np.arange(degree + 1)[:, None], np.arange(count)[None, :]
    result: Floats = cosines(count)[(k * (2 * i + 1)) % (4 * count)]
    return result


def gamma(k: float) -> float:
    """ku/(1 − ku) for float64."""
    return k * 2.0**-53 / (1 - k * 2.0**-53)


def contract(values: Floats, matrix: Floats, axis: int) -> Floats:
    """Σ_k values[…, k, …] matrix[k, j] along `axis`."""
    result: Floats = np.moveaxis(np.tensordot(values, matrix, axes=([axis], [0])), -1, axis)
    return result


def evaluation_error(mass: float, lengths: list[int]) -> float:
    """Of Σ c_k Π T_{k_v} by one matrix product per axis of these lengths: ℓ1 mass times all relative errors.

    Entries err by 2^−52, at most 1 in size; a product of length L, in any order, by γ_L; hence
    Π (1 + 2^−52)(1 + γ_L) − 1, which is below twice its first-order part.
    """
    return 2 * mass * sum(_ENTRY + gamma(length) for length in lengths)


def coefficients(values: Floats) -> tuple[Floats, float]:
    """Coefficients of the interpolant of `values` at the zeros of T_n (n per axis), and a bound of each one's error.

    One axis multiplies sup-norms by at most 2 (row sums of (2/n)|T_k|) and errs by γ_{n+4} of that.
    """
    n, axes = values.shape[0], values.ndim
    matrix = values_at_nodes(n - 1, n).T * (2.0 / n)
    matrix[:, 0] = 1.0 / n
    result = values
    for axis in range(axes):
        result = contract(result, matrix, axis)
    size = float(np.abs(values).max())
    return result, 2.0**axes * size * 2 * axes * (gamma(n + 4) + 2 * _ENTRY)


def sup_norm(c: Floats) -> float:
    """A bound of sup |Σ c_k T_k|: ℓ1 mass of the high degrees plus Ehlich–Zeller for degrees ≤ m, or ℓ1 if smaller.

    Ehlich–Zeller: a polynomial of degree ≤ m in each variable is at most max over the zeros of T_M divided by
    cos(πm/(2M)) per variable, M > m.
    """
    axes, mass = c.ndim, np.abs(c)
    total = float(mass.sum())
    if total == 0:
        return 0.0
    degree = np.zeros(c.shape, dtype=np.int16)  # of each coefficient, the largest over the variables
    for axis, n in enumerate(c.shape):
        along = np.arange(n, dtype=np.int16).reshape([n if a == axis else 1 for a in range(axes)])
        np.maximum(degree, along, out=degree)
    by_degree = np.bincount(degree.ravel(), weights=mass.ravel())
    tails = total - np.cumsum(by_degree)
    rough = _rough_size(c)
    affordable = int(GRID_POINTS ** (1 / axes))
    best, chosen = total, None
    for m in range(len(by_degree)):
        points = min(affordable, 24 * (m + 1))
        if points <= m + 1:
            break
        estimate = rough / math.cos(math.pi * m / (2 * points)) ** axes + tails[m]
        if estimate < best:
            best, chosen = estimate, (m, points)
    if chosen is None:
        return total * (1 + 1e-9)
    m, points = chosen
    low = c[tuple(slice(0, m + 1) for _ in range(axes))]
    high = total - float(np.abs(low).sum()) + 1e-12 * total
    peak = _grid_maximum(low, points) + evaluation_error(total, [m + 2] * axes)
    bound = peak / math.cos(math.pi * m / (2 * points)) ** axes + high
    return min(bound, total) * (1 + 1e-9)


def _rough_size(c: Floats) -> float:
    """The maximum over a coarse grid, to choose a strategy by."""
    values = c
    for axis in range(c.ndim):
        values = contract(values, values_at_nodes(c.shape[axis] - 1, c.shape[axis]), axis)
    return float(np.abs(values).max())


def _grid_maximum(c: Floats, points: int) -> float:
    """max |Σ c_k T_k| over the tensor grid of the zeros of T_points, one slab of the first axis at a time."""
    matrix = values_at_nodes(c.shape[0] - 1, points)
    if c.ndim == 1:
        return float(np.abs(c @ matrix).max())
    peak = 0.0
    flat = c.reshape(c.shape[0], -1).T  # (rest, first)
    block = max(1, int(4e6 / points ** (c.ndim - 1)))
    for start in range(0, points, block):
        slab = (flat @ matrix[:, start : start + block]).reshape(*c.shape[1:], -1)
        for _ in range(c.ndim - 1):  # the first remaining axis is summed, its grid axis goes last
            slab = np.tensordot(slab, matrix, axes=([0], [0]))
        peak = max(peak, float(np.abs(slab).max()))
    return peak
