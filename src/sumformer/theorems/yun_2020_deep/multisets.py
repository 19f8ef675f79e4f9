"""Multisets of cells: sorted rows (c_1 ≤ … ≤ c_n), how many orders each has, where a row stands; and ordered tuples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb, factorial

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Multisets:
    """All multisets of n of the cells 0 … count − 1."""

    n: int
    count: int

    @property
    def size(self) -> int:
        """How many there are, which `len` may not be able to say."""
        return comb(self.count + self.n - 1, self.n)

    def __len__(self) -> int:
        return self.size

    @cached_property
    def rows(self) -> Ints:
        """(number, n), in lexicographic order."""
        choices = combinations_with_replacement(range(self.count), self.n)
        return np.fromiter((c for row in choices for c in row), dtype=np.int64).reshape(-1, self.n)

    @cached_property
    def keys(self) -> Ints:
        return self._key(self.rows)

    def _key(self, rows: Ints) -> Ints:
        powers = self.count ** np.arange(self.n - 1, -1, -1, dtype=np.int64)
        return np.asarray(rows @ powers)

    def find(self, cells: Ints) -> tuple[Ints, Ints]:
        """Cells (m, n) in any order → the row of their multiset (m,), and the place in it of each (m, n)."""
        order = np.argsort(cells, axis=1, kind="stable")
        return np.searchsorted(self.keys, self._key(np.take_along_axis(cells, order, 1))), np.argsort(order, axis=1)

    def orders(self, rows: Ints) -> Ints:
        """In how many orders each multiset occurs."""
        return orders(rows)


@dataclass(frozen=True)
class Tuples(Multisets):
    """All choices of n cells in order, for functions of sequences: each occurs once."""

    @property
    def size(self) -> int:
        return int(self.count**self.n)

    @cached_property
    def rows(self) -> Ints:
        axes = np.meshgrid(*[np.arange(self.count)] * self.n, indexing="ij")
        return np.stack([axis.ravel() for axis in axes], -1)

    def find(self, cells: Ints) -> tuple[Ints, Ints]:
        return self._key(cells), np.broadcast_to(np.arange(self.n), cells.shape)

    def orders(self, rows: Ints) -> Ints:
        return np.ones(len(rows), dtype=np.int64)


def orders(rows: Ints) -> Ints:
    """n!/Π m_i! for sorted rows: in how many orders the multiset occurs."""
    out = np.full(len(rows), factorial(rows.shape[1]), dtype=np.int64)
    run = np.ones(len(rows), dtype=np.int64)
    for i in range(1, rows.shape[1]):  # dividing by 1, 2, …, m along each run of equal cells
        run = np.where(rows[:, i] == rows[:, i - 1], run + 1, 1)
        out //= run
    return out


def longest_run(cells: Ints) -> Ints:
    """The largest multiplicity in each row, sorted or not."""
    rows = np.sort(cells, axis=1)
    longest = run = np.ones(len(rows), dtype=np.int64)
    for i in range(1, rows.shape[1]):
        run = np.where(rows[:, i] == rows[:, i - 1], run + 1, 1)
        longest = np.maximum(longest, run)
    return longest
