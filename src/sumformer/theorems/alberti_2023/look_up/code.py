"""φ: {0, …, K−1} → integers ≥ 0 such that the own cell and Σ φ over all n tokens determine the other n − 1 cells.

  moments   φ(q) = q + q² R_1 + … + q^{n−1} R_1⋯R_{n−2},  R_j = (n−1)(K−1)^j + 1: Σ over the others is the power sums
            p_1, …, p_{n−1} as digits (p_j < R_j), and n − 1 power sums determine n − 1 numbers (Newton)
  digits    φ(q) = n^q: how many of the others lie in each cell, in base n

The smaller one is taken: for two tokens φ(q) = q.
"""

from __future__ import annotations

from collections.abc import Sequence

LONGEST = 64  # digits beyond are out of float64's reach


def look_up_code(cells: int, n: int) -> list[int]:
    """φ(0), …, φ(K−1), ascending."""
    most = cells - 1
    by_moments = _moment(most, most, n)
    if most <= LONGEST and n**most < by_moments:
        return [n**q for q in range(cells)]
    return [_moment(q, most, n) for q in range(cells)]


def largest_code(cells: int, n: int) -> int:
    """φ(K−1)."""
    most = cells - 1
    by_moments = _moment(most, most, n)
    return min(n**most, by_moments) if most <= LONGEST else by_moments


def keys(code: Sequence[int], n: int) -> int:
    """A > Σ: with it A·q + Σ tells own cell and Σ apart."""
    return n * code[-1] + 1


def _moment(q: int, most: int, n: int) -> int:
    total, radix = 0, 1
    for j in range(1, n):
        total += q**j * radix
        radix *= (n - 1) * most**j + 1
    return total
