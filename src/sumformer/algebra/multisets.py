"""Multisets b_1 ≤ … ≤ b_k of types 0 … A−1 in colexicographic order: rank(b) = Σ_i C(b_i + i − 1, i).

Those whose largest type is b are the first C(b+k−1, k−1) multisets of size k − 1, each with b added: blocks one after
the other, so that "all types ≤ b" is a prefix.
"""

from __future__ import annotations

from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


class Multisets:
    """All multisets of size k = 0 … m over A types."""

    def __init__(self, types: int, m: int) -> None:
        self.types, self.m = types, m

    def count(self, k: int) -> int:
        """C(A + k − 1, k)."""
        return comb(self.types + k - 1, k)

    @cached_property
    def members(self) -> list[IntArray]:
        """For every k the array (count, k) of types, non-decreasing along each row."""
        found = [np.zeros((1, 0), dtype=np.int64)]
        for k in range(1, self.m + 1):
            rest, last = self.split(k)
            found.append(np.column_stack([found[-1][rest], last]))
        return found

    def split(self, k: int) -> tuple[IntArray, IntArray]:
        """For every multiset of size k ≥ 1: the rank of what is left without its largest type, and that type."""
        sizes = [comb(b + k - 1, k - 1) for b in range(self.types)]
        rest = np.concatenate([np.arange(size) for size in sizes])
        return rest, np.repeat(np.arange(self.types), sizes)

    @cached_property
    def insertions(self) -> list[IntArray]:
        """For every k < m the array (count, A): the rank of a multiset of size k with type i added."""
        types = np.arange(self.types)
        found = [types[None, :].astype(np.int64)]
        for k in range(1, self.m):
            rest, last = self.split(k)
            steps = np.array([comb(b + k, k + 1) for b in range(self.types)], dtype=np.int64)
            larger = np.maximum(types[None, :], last[:, None])  # the largest type of the new multiset …
            inner = np.where(types[None, :] >= last[:, None], np.arange(len(last))[:, None], found[-1][rest])
            found.append(inner + steps[larger])  # … stands before the rank of the others
        return found

    def arrangements(self, k: int) -> NDArray[np.float64]:
        """k! / Π multiplicities!: the number of sequences with this multiset of entries."""
        counts, run = np.ones(1), np.zeros(1)
        for size in range(1, k + 1):
            rest, last = self.split(size)
            same = np.zeros(len(rest), dtype=bool)
            if size > 1:
                same = self.members[size - 1][rest, -1] == last
            run = np.where(same, run[rest] + 1, 1.0)
            counts = counts[rest] * size / run
        return np.rint(counts)
