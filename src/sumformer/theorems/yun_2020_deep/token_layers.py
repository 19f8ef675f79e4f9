"""Token-wise layers of the modified class, r = 1:   z ↦ z + w₂ φ(w₁ᵀz),   φ(t) = a_i t + b_i on the i-th of 3 pieces.

The pieces are (−∞, c₁), [c₁, c₂), [c₂, ∞). Exact: whole numbers or fractions, layers stacked along the first axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from sumformer.theorems.yun_2020_deep.grid import Exact, as_exact, in_numbers_of


@dataclass(frozen=True)
class TokenLayers:
    """L layers on width D: `w1`, `w2` (L, D), breaks `c` (L, 2), slopes `a` and offsets `b` (L, 3), of objects."""

    w1: Exact
    w2: Exact
    c: Exact
    a: Exact
    b: Exact

    def __len__(self) -> int:
        return len(self.w1)

    def __add__(self, later: TokenLayers) -> TokenLayers:
        """These layers, then the later ones."""
        return TokenLayers(*(np.concatenate(pair) for pair in zip(self.arrays, later.arrays, strict=True)))

    @property
    def arrays(self) -> tuple[Exact, ...]:
        return self.w1, self.w2, self.c, self.a, self.b

    def __call__(self, z: Exact) -> Exact:
        """(…, D) → (…, D), in the arithmetic of z: int64, or objects."""
        w1, w2, a, b = (in_numbers_of(values, z) for values in (self.w1, self.w2, self.a, self.b))
        c = _breaks(self.c, z)
        for l in range(len(self)):  # noqa: E741
            t = z @ w1[l]
            piece = (t >= c[l, 0]).astype(np.int64) + (t >= c[l, 1])
            z = z + (a[l][piece] * t + b[l][piece])[..., None] * w2[l]
        return z

    def fused(self, z: Exact) -> Exact:
        """The same for look-up layers: one form w₁, φ = 0 outside [c₁, c₂), which lies lower for every next layer."""
        w1, w2, a, b = (in_numbers_of(values, z) for values in (self.w1, self.w2, self.a, self.b))
        c = _breaks(self.c, z)
        flat = z.reshape(-1, z.shape[-1]).copy()
        last = np.full(len(flat), -1)
        live = np.arange(len(flat))
        while len(live):
            t = flat[live] @ w1[0]
            place = np.searchsorted(c[::-1, 0], t, side="right") - 1
            l = len(self) - 1 - place  # noqa: E741
            hit = (l > last[live]) & (place >= 0)
            hit[hit] = t[hit] < c[l[hit], 1]
            live, l, t = live[hit], l[hit], t[hit]  # noqa: E741
            flat[live] = flat[live] + (a[l, 1] * t + b[l, 1])[:, None] * w2[l]
            last[live] = l
        return flat.reshape(z.shape)


def layers(rows: list[dict[str, Any]]) -> TokenLayers:
    """From one mapping of w1, w2, c, a, b for each layer."""
    return TokenLayers(*(as_exact([row[name] for row in rows]) for name in ("w1", "w2", "c", "a", "b")))


def unit(width: int, place: int) -> list[int]:
    """e_place."""
    return [int(i == place) for i in range(width)]


def _breaks(c: Exact, z: Exact) -> Exact:
    """t ≥ c is t ≥ ⌈c⌉ for whole t."""
    if z.dtype == object:
        return c
    return np.vectorize(lambda v: ceil(Fraction(v)), otypes=[np.int64])(c) if c.size else c.astype(np.int64)
