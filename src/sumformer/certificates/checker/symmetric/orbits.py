"""Tensors W[a, b_1, …, b_m] symmetric in b, one entry per multiset {b_1 ≤ … ≤ b_m}: ranks, and products along all axes.

The multiset b_1 ≤ … ≤ b_k of types has rank Σ_i C(b_i + i − 1, i), so that multisets with all types < B come first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import comb

import numpy as np

from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.symmetric.files import Integers

BUFFER = 2**16  # numbers: small enough for a processor's cache
Step = Callable[[Floats, int], None]


@cache
def members(types: int, k: int) -> Integers:
    """(C(types + k − 1, k), k), row r being the multiset of rank r, ascending."""
    if k == 0:
        return np.zeros((1, 0), dtype=np.int64)
    smaller = members(types, k - 1)
    return np.concatenate(
        [np.column_stack([smaller[: comb(b + k - 1, k - 1)], np.full(comb(b + k - 1, k - 1), b)]) for b in range(types)]
    )


def rank(multisets: Integers) -> Integers:
    """Of rows in ascending order."""
    out = np.zeros(len(multisets), dtype=np.int64)
    for i in range(multisets.shape[1]):
        top = int(multisets[:, i].max(initial=0))
        out += np.array([comb(b + i, i + 1) for b in range(top + 1)], dtype=np.int64)[multisets[:, i]]
    return out


@cache
def insertions(types: int, k: int) -> Integers:
    """(types, multisets of size k): the rank of each with one more type."""
    base = members(types, k)
    return np.stack([rank(np.sort(np.column_stack([base, np.full(len(base), i)]), axis=1)) for i in range(types)])


def arrangements(multisets: Integers) -> Floats:
    """k!/Π multiplicities!, exact in float64 for the sizes met here."""
    out, run = np.ones(len(multisets)), np.zeros(len(multisets))
    for i in range(multisets.shape[1]):
        same = multisets[:, i] == multisets[:, i - 1] if i else np.zeros(len(multisets), dtype=bool)
        run = np.where(same, run + 1, 1.0)
        out = out * (i + 1) / run
    return np.rint(out)


def apply(values: Floats, own: Floats, others: Floats, m: int, watch: Step | None = None) -> Floats:
    """Σ_a own[a', a] Σ_{i_1…i_m} Π_j others[b_j, i_j] values[a, {i}], shape (own types, multisets of the new types).

    One axis after the other: after k of them the state is indexed by a multiset of m − k old and one of k new types,
      W_{k+1}[q, p ∪ {b}] = Σ_i others[b, i] W_k[q ∪ {i}, p],  b not less than any of p.
    `watch(state, k)` sees the state (old, new, a') before each step.
    """
    state = (own @ values).T[:, None, :]
    for k in range(m):
        if watch is not None:
            watch(state, k)
        state = _along_one(state, others, insertions(others.shape[1], m - k - 1), k)
    return np.ascontiguousarray(state[0].T)


def _along_one(state: Floats, matrix: Floats, places: Integers, k: int) -> Floats:
    types, rows = len(matrix), state.shape[2]
    starts = [comb(b + k, k + 1) for b in range(types + 1)]  # of the new multisets whose largest type is b
    out = np.empty((places.shape[1], starts[-1], rows))
    low = 0
    while low < types:
        high = low + 1
        while high < types and comb(high + k, k) <= max(16, 2 * comb(low + k, k)):
            high += 1
        reach = comb(high - 1 + k, k)  # multisets of size k with types < high
        chunk = max(1, BUFFER // (reach * rows * max(len(places), high - low)))
        for start in range(0, places.shape[1], chunk):
            some = slice(start, start + chunk)
            gathered = state[places[:, some], :reach]
            block = (matrix[low:high] @ gathered.reshape(len(places), -1)).reshape(high - low, -1, reach, rows)
            for b in range(low, high):
                count = starts[b + 1] - starts[b]
                out[some, starts[b] : starts[b + 1]] = block[b - low, :, :count]
        low = high
    return out


def largest_state(old: int, new: int, m: int) -> int:
    """Numbers in the largest state, for each a'."""
    return max(comb(old + m - k - 1, m - k) * comb(new + k - 1, k) for k in range(m + 1))
