"""Tensors V[a, b_1, …, b_m] symmetric in b, stored once per multiset {b_1, …, b_m}, and matrices applied to every axis.

(A ⊗ B ⊗ … ⊗ B) V, axis by axis: after k axes the state is indexed by a multiset of k new and one of m − k old types,
  W_{k+1}[p ∪ {b}, q] = Σ_i B[b, i] W_k[p, q ∪ {i}],  b the largest of the new ones.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np

from sumformer.algebra.multisets import IntArray, Multisets
from sumformer.algebra.rounding import FloatArray

CHUNK = 2**22  # numbers in one buffer
Watch = Callable[[FloatArray, int], None]


def transform(
    values: FloatArray, own: FloatArray, others: FloatArray, m: int, watch: Watch | None = None
) -> FloatArray:
    """values (…, A, multisets of m old types) → (…, A', multisets of m new types).

    `own` (A', A) acts on the own axis first, `others` (B', B) on each of the m axes after it. `watch(state, k)` sees
    the state (old multisets of size m − k, rows, new multisets of size k) before each of these m steps.
    """
    old = Multisets(others.shape[1], m)
    moved = np.matmul(own, values)
    lead = moved.shape[:-1]
    state = np.ascontiguousarray(moved.reshape(-1, moved.shape[-1]).T)[:, :, None]
    for k in range(m):
        if watch is not None:
            watch(state, k)
        state = _step(state, others, old.insertions[m - k - 1].T, k)
    return state.reshape(*lead, -1)


def _step(state: FloatArray, matrix: FloatArray, insert: IntArray, k: int) -> FloatArray:
    """One axis; insert (old types, old multisets q) says where q ∪ {i} stands."""
    rows = state.shape[1]
    sizes = [comb(b + k, k) for b in range(len(matrix))]  # new multisets of size k with all types ≤ b
    ends = np.cumsum(sizes)
    out = np.empty((insert.shape[1], rows, int(ends[-1])))
    for low, high in _blocks(sizes):  # a few new types at a time, since the smaller ones need only a prefix
        prefix = sizes[high - 1]
        part, block = state[:, :, :prefix], matrix[low:high]
        step = max(1, CHUNK // (rows * prefix * max(matrix.shape)))
        for start in range(0, insert.shape[1], step):
            some = slice(start, start + step)
            gathered = part[insert[:, some]]  # (i, q, rows, p)
            piece = (block @ gathered.reshape(len(insert), -1)).reshape(high - low, -1, rows, prefix)
            for b in range(low, high):
                out[some, :, ends[b] - sizes[b] : ends[b]] = piece[b - low, :, :, : sizes[b]]
    return out


def _blocks(sizes: list[int]) -> list[tuple[int, int]]:
    """Ranges of types whose prefixes differ by at most a factor 2, or that are short altogether."""
    blocks, high = [], len(sizes)
    while high:
        low = high - 1
        while low and (2 * sizes[low - 1] >= sizes[high - 1] or sizes[high - 1] <= 16):
            low -= 1
        blocks.append((low, high))
        high = low
    return blocks
