"""m̃(B ∪ {b}) = p_b m̃(B) − Σ_j m̃(B with B_j·b for B_j): sums over orbits of others as polynomials in power sums.

m̃(B) = Σ over distinct j_1 … j_r of Π_i e_{B_i}(y_{j_i}), p_b = Σ_j e_b(y_j), and e_a e_b = Σ_c w_c e_c says what the
functions e are: x^a x^b = x^{a+b}, or T_a T_b = (T_{a+b} + T_{|a−b|})/2. All orbits go down together, one part at a
time; equal ones are merged on the way. e_0 = 1, so a part 0 is the factor m − (number of the other parts).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sumformer.errors import InputError, RefusedError

MOST_ROWS: Final = 2**24
MOST_CELLS: Final = 2**25

Degree = tuple[int, ...]
Product = Callable[[Degree, Degree], Sequence[tuple[Degree, float]]]
IntArray = NDArray[np.int64]
Values = NDArray[Any]
"""(orbits, 1): integers, exact. (orbits, 3): float64 v, a bound of the sum of the absolute values of all that flowed
into v, and a bound of v's rounding error."""


class DegreeTable:
    """Degree vectors numbered in the order of their appearance; number 0 is the zero vector."""

    def __init__(self, d: int) -> None:
        self.vectors: list[Degree] = [(0,) * d]
        self._numbers: dict[Degree, int] = {self.vectors[0]: 0}

    def number(self, vector: Degree) -> int:
        found = self._numbers.setdefault(vector, len(self.vectors))
        if found == len(self.vectors):
            self.vectors.append(vector)
        return found

    def numbers(self, vectors: IntArray) -> IntArray:
        """(…, d) → (…): the number of each vector."""
        flat = np.ascontiguousarray(vectors).reshape(-1, vectors.shape[-1])
        if not len(flat):
            return np.zeros(vectors.shape[:-1], dtype=np.int64)
        inverse, rows = distinct(flat)
        named = np.array([self.number(tuple(row)) for row in flat[rows].tolist()], dtype=np.int64)
        return named[inverse].reshape(vectors.shape[:-1])

    def array(self) -> IntArray:
        return np.array(self.vectors, dtype=np.int64)


def distinct(keys: IntArray) -> tuple[IntArray, IntArray]:
    """For every row the number of its class of equal rows, and one row of each class."""
    words = _packed(keys)
    if len(words) == 1 and int(words[0].max()) <= 4 * len(keys):  # few possible rows: look them up, no sorting
        last = np.full(int(words[0].max()) + 1, -1, dtype=np.int64)
        last[words[0]] = np.arange(len(keys))
        return (np.cumsum(last >= 0) - 1)[words[0]], last[last >= 0]
    order, starts = classes(keys)
    numbers = np.empty(len(keys), dtype=np.int64)
    numbers[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(keys)))
    return numbers, order[starts]


def merge(keys: IntArray, values: Values) -> tuple[IntArray, Values, IntArray]:
    """Equal rows of `keys` once, their values added; also the size of each class."""
    order, starts = classes(keys)
    sizes = np.diff(starts, append=len(keys))
    if not len(keys):
        return keys, values, sizes
    return keys[order[starts]], np.add.reduceat(values[order], starts, axis=0), sizes


def to_power_sums(
    table: DegreeTable, own: IntArray, parts: IntArray, values: Values, m: int, product: Product
) -> tuple[IntArray, IntArray, Values]:
    """Σ_k v_k e_{own_k} m̃(parts_k) as Σ_t v'_t e_{own_t} Π_i p_{factors_ti}, for m others.

    `own` (orbits,) and `parts` (orbits, r) hold numbers of `table`, 0 for "no part"; so do own and factors returned.
    """
    r = parts.shape[1]
    parts = -np.sort(-parts, axis=1)
    counts = np.count_nonzero(parts, axis=1)
    if counts.max(initial=0) > m:
        raise InputError(f"orbit sums: expected at most m = {m} parts, got {counts.max()}")
    pending: list[list[tuple[IntArray, Values]]] = [[] for _ in range(r + 1)]
    rows = np.concatenate([own[:, None], parts], axis=1)
    for k in range(r + 1):
        pending[k].append((rows[counts == k], values[counts == k]))
    for k in range(r, 0, -1):  # rows are [own | k parts, decreasing | factors, decreasing]
        keys, level = _merge_all(pending[k])
        if len(keys):
            taken = keys.copy()
            taken[:, k:] = -np.sort(-taken[:, k:], axis=1)
            pending[k - 1].append((taken, level))
            _join(table, keys, level, k, m, product, pending)
    keys, level = _merge_all(pending[0])
    kept = np.any(level != 0, axis=1)
    return keys[kept, 0], keys[kept, 1:], level[kept]


def multiplicities(parts: IntArray) -> list[int]:
    """Π_v (how often v occurs in the row)!, over the parts v ≠ 0: m̃(B) counts every arrangement so many times."""
    ordered = np.sort(parts, axis=1)
    run, total = np.ones(len(parts), dtype=np.int64), np.ones(len(parts), dtype=object)
    for j in range(1, parts.shape[1]):
        run = np.where((ordered[:, j] == ordered[:, j - 1]) & (ordered[:, j] != 0), run + 1, 1)
        total = total * run
    return [int(t) for t in total]


def _join(
    table: DegreeTable,
    keys: IntArray,
    level: Values,
    k: int,
    m: int,
    product: Product,
    pending: list[list[tuple[IntArray, Values]]],
) -> None:
    """− Σ_j m̃(B with B_j·b for B_j), b the k-th part."""
    last = keys[:, k]
    size = len(table.vectors)
    for j in range(1, k):
        pairs, inverse = np.unique(keys[:, j] * size + last, return_inverse=True)
        results = [product(table.vectors[p // size], table.vectors[p % size]) for p in pairs.tolist()]
        for i in range(max(map(len, results))):
            # The i-th summand of e_a e_b, for the pairs that have so many.
            has = np.array([len(result) > i for result in results])[inverse]
            named = np.array([table.number(result[i][0]) if len(result) > i else 0 for result in results])[inverse]
            exact = level.dtype != np.float64
            weights = np.array(
                [(int(result[i][1]) if exact else result[i][1]) if len(result) > i else 0 for result in results],
                dtype=level.dtype,
            )[inverse]
            for vanished in (False, True):
                rows = np.flatnonzero(has & ((named == 0) == vanished))
                if len(rows):
                    left = k - 1 - vanished
                    weight = -weights[rows] * (m - left if vanished else 1)
                    joined = keys[rows]
                    joined[:, j], joined[:, k] = named[rows], 0
                    joined[:, 1 : k + 1] = -np.sort(-joined[:, 1 : k + 1], axis=1)
                    joined[:, left + 1 :] = -np.sort(-joined[:, left + 1 :], axis=1)
                    pending[left].append((joined, level[rows] * _columns(weight, level.shape[1])))


def _columns(weight: Values, columns: int) -> Values:
    """The weight for v; its absolute value for the two bounds."""
    return np.stack([weight, *[np.abs(weight)] * (columns - 1)], axis=1)


def _merge_all(chunks: list[tuple[IntArray, Values]]) -> tuple[IntArray, Values]:
    keys, values = np.concatenate([k for k, _ in chunks]), np.concatenate([v for _, v in chunks])
    if len(keys) > MOST_ROWS or keys.size > MOST_CELLS:
        reason = f"{len(keys)} products of power sums at once are more than are held; give the target as sums of tokens"
        raise RefusedError("orbit sums: too many terms", [reason])
    keys, values, sizes = merge(keys, values)
    if values.shape[1] == 3:
        # s summands: each came from one product by a weight, which rounds and may underflow; then s − 1 additions.
        values[:, 2] += (sizes + 1) * 2.0**-53 * values[:, 1]
    return keys, values


def classes(keys: IntArray) -> tuple[IntArray, IntArray]:
    """An order in which equal rows stand together, and where each class begins in it."""
    if not len(keys) or not keys.shape[1]:
        return np.arange(len(keys)), np.zeros(min(len(keys), 1), dtype=np.int64)
    words = _packed(keys)
    order = np.lexsort(words)
    new = np.ones(len(keys), dtype=bool)
    new[1:] = np.logical_or.reduce([word[order][1:] != word[order][:-1] for word in words])
    return order, np.flatnonzero(new)


def _packed(keys: IntArray) -> list[IntArray]:
    """Columns ≥ 0, as many to a 63-bit word as fit."""
    bits = max(1, math.ceil(math.log2(int(keys.max()) + 2)))
    per_word = max(1, 63 // bits)
    words = []
    for start in range(0, keys.shape[1], per_word):
        word = np.zeros(len(keys), dtype=np.int64)
        for column in range(start, min(start + per_word, keys.shape[1])):
            word = (word << bits) | keys[:, column]
        words.append(word)
    return words
