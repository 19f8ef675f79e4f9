"""The grid [0 : δ : 1−δ]^{n×d}, δ = 1/q, in units of δ, and the column id  l = uᵀz,  u = (1, q, …, q^{d−1}).

Every magnitude of the construction is a whole number in these units, for every δ: nothing is rounded, δ = 1/3 included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sumformer.errors import InputError

Exact = NDArray[Any]
"""Whole numbers (int64 or Python's), or fractions, in an array of objects."""


@dataclass(frozen=True)
class Grid:
    """n tokens of width d, q = 1/δ cells along each coordinate; `places` E_j moves token j to [E_j, E_j + 1)^d.

    Without places (Y Theorem 2) all tokens share [0, 1)^d; with them (Y Theorem 3, S Theorem 1) each has its own.
    """

    n: int
    d: int
    q: int
    places: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        wrong = [f"{name} = {size!r}" for name, size, least in self._sizes() if not _whole(size) or size < least]
        if wrong:
            raise InputError(f"Grid: expected n ≥ 2, d ≥ 1 and 1/δ ≥ 2, got {', '.join(wrong)}")
        if self.places is not None and sorted(self.places) != list(range(self.n)):
            raise InputError(f"Grid: expected a permutation of 0 … {self.n - 1} as places, got {self.places}")

    def _sizes(self) -> tuple[tuple[str, int, int], ...]:
        return ("n", self.n, 2), ("d", self.d, 1), ("1/δ", self.q, 2)

    @property
    def Q(self) -> int:
        """δ^{−d}, the cells of one token."""
        return int(self.q**self.d)

    @property
    def u(self) -> tuple[int, ...]:
        return tuple(self.q**i for i in range(self.d))

    @property
    def outside(self) -> int:
        """δ^{−nd}: entries out of range become −δ^{−nd}, which is −q^{nd+1} steps of δ."""
        return int(self.q ** (self.n * self.d + 1))

    @property
    def stride(self) -> int:
        """How far apart in id two neighbouring places are: q·(1 + q + … + q^{d−1}) ≥ Q."""
        return self.q * sum(self.u)

    def base(self, token: int) -> int:
        """The least id of a token."""
        return 0 if self.places is None else self.places[token] * self.stride

    @property
    def inputs(self) -> int:
        """Cells that get values of their own: C(Q, n) multisets of distinct ones, or Qⁿ with places."""
        return comb(self.Q, self.n) if self.places is None else self.Q**self.n

    def tokens(self, cells: Exact) -> Exact:
        """Cell numbers (…, n) in 0 … Q−1 → tokens (…, n, d), the digits of the number, moved to their places."""
        digits = np.stack([(cells // step) % self.q for step in self.u], -1)
        if self.places is None:
            return digits
        return np.asarray(digits + self.q * np.asarray(self.places, dtype=cells.dtype)[:, None])

    def cells(self) -> NDArray[np.int64]:
        """(inputs, n): every set of n distinct cells once, or with places every choice of n cells."""
        if self.places is not None:
            axes = np.meshgrid(*[np.arange(self.Q)] * self.n, indexing="ij")
            return np.stack([axis.ravel() for axis in axes], -1)
        flat = np.fromiter((c for s in combinations(range(self.Q), self.n) for c in s), dtype=np.int64)
        return flat.reshape(-1, self.n)


def as_exact(values: Exact | Sequence[Any]) -> Exact:
    """The same numbers as Python's own, which do not overflow."""
    out = np.empty(np.shape(values), dtype=object)
    out[...] = np.asarray(values, dtype=object)
    return out


def in_numbers_of(values: Exact, z: Exact) -> Exact:
    """`values` as z has its numbers: Python's own, or int64."""
    return values if z.dtype == object else values.astype(np.int64)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
