"""Attention layers of the modified class, h = 2, m = 1, hardmax:   z ↦ z + e₁ (s₁ ψ₁(z) − s₂ ψ₂(z)).

ψ_h(z)_k = max_{j ∈ A_k} uᵀz_j  where  β_h uᵀz_k > b_h,   min_{j ∈ A_k} uᵀz_j  where smaller, their mean where equal:
a head with query β uᵀz_k − b, keys and values uᵀz_j. Exact; A_k = [n] without a pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sumformer.nn.patterns.pattern import Pattern
from sumformer.theorems.yun_2020_deep.grid import Exact, as_exact, in_numbers_of


@dataclass(frozen=True)
class ShiftLayers:
    """L layers: `beta`, twice the thresholds `b2`, scales `s`, each (L, 2); `u` (D,); step of the `pattern` (L,)."""

    u: Exact
    beta: Exact
    b2: Exact
    s: Exact
    step: tuple[int, ...] = ()
    pattern: Pattern | None = None

    def __len__(self) -> int:
        return len(self.s)

    def __call__(self, z: Exact) -> Exact:
        """(batch, n, D) → (batch, n, D), in the arithmetic of z: int64, or objects."""
        for z_after in self.states(z):
            z = z_after
        return z

    def states(self, z: Exact) -> Iterator[Exact]:
        """z after each layer."""
        u, s = (in_numbers_of(values, z) for values in (self.u, self.s))
        lists = self._neighbours(z.shape[1])
        for l in range(len(self)):  # noqa: E741
            ids = z @ u
            high, low = _extremes(ids, None if self.pattern is None else lists[self.step[l]])
            shift = sum(
                s[l, h] * sign * self._head(l, h, ids, high, low) for h, sign in ((0, 1), (1, -1)) if self.s[l, h]
            )
            first = np.zeros(z.shape[-1], dtype=z.dtype)
            first[0] = 1
            z = z + np.asarray(shift + 0 * ids)[..., None] * first
            yield z

    def _head(self, l: int, h: int, ids: Exact, high: Exact, low: Exact) -> Exact:  # noqa: E741
        query = 2 * in_numbers_of(self.beta, ids)[l, h] * ids - in_numbers_of(self.b2, ids)[l, h]
        out = np.where(query > 0, high, low)
        tied = query == 0
        return np.where(tied, _mean(ids), out) if tied.any() else out

    def _neighbours(self, n: int) -> list[tuple[Exact, Exact]]:
        """For each step the first connection of every token, and all connections in order."""
        if self.pattern is None:
            return []
        edges = [self.pattern.edges(n, step) for step in range(self.pattern.p)]
        return [(np.searchsorted(k.numpy(), np.arange(n)), j.numpy()) for k, j in edges]


def _extremes(ids: Exact, lists: tuple[Exact, Exact] | None) -> tuple[Exact, Exact]:
    if lists is None:
        return ids.max(1, keepdims=True), ids.min(1, keepdims=True)
    starts, columns = lists
    return np.maximum.reduceat(ids[:, columns], starts, 1), np.minimum.reduceat(ids[:, columns], starts, 1)


def _mean(ids: Exact) -> Exact:
    """The mean over all tokens: scores of 0 tie; only the last, dense layer can meet them."""
    total, n = ids.sum(1, keepdims=True), ids.shape[1]
    if bool((total % n == 0).all()):
        return np.asarray(total // n)
    return np.asarray(np.vectorize(lambda v: Fraction(v) / n, otypes=[object])(total))


def shift_layers(
    u: tuple[int, ...],
    rows: list[tuple[tuple[int, int], tuple[int, int], tuple[int, int]]],
    step: tuple[int, ...] = (),
    pattern: Pattern | None = None,
) -> ShiftLayers:
    """From (β, 2b, s) of each layer, two heads each."""
    beta, b2, s = (as_exact([row[i] for row in rows]).reshape(-1, 2) for i in range(3))
    return ShiftLayers(as_exact(u), beta, b2, s, step, pattern)
