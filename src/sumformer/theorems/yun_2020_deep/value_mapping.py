"""Y Lemma 7: from ids to values, one layer with r = 1 for each distinct id.

push       z ↦ z − P·1 φ(uᵀz),   φ = 1 outside [t_l, t_r], else 0: all entries become negative        1 layer
cut        z_i ↦ z_i + φ(z_i),   φ(t) = −t for t < 0, else 0                                            d layers
look up    z ↦ z + (A − ẑ) φ(uᵀz),   φ = 1 on [id − δ/2, id + δ/2), else 0                              1 for each id

ẑ is the token that has this id, A the value wanted for it; |uᵀA| < t_l − δ: a written value meets no id still to come.
Ids come from the largest down: no token is far to the right of a bump, where four ReLUs would have to cancel.
1 + d + n·C(δ^{−d}, n) layers; with places n·δ^{−dn}, nothing to push or cut.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np

from sumformer.errors import InputError
from sumformer.theorems.yun_2020_deep.grid import Exact, Grid, as_exact
from sumformer.theorems.yun_2020_deep.token_layers import TokenLayers, layers, unit

HALF = Fraction(1, 2)


def reject(u: Exact, low: int, high: int, largest: int) -> TokenLayers:
    """Push and cut: tokens with an id outside [low, high] become 0; `largest` bounds all |entries|."""
    width = len(u)
    away = {"w1": list(u), "w2": [-2 * (largest + 1) if weight else 0 for weight in u], "c": [low - HALF, high + HALF]}
    rows = [{**away, "a": [0, 0, 0], "b": [1, 0, 1]}]
    for i in range(width):
        if u[i]:
            up = {"w1": unit(width, i), "w2": unit(width, i), "c": [0, 1]}
            rows.append({**up, "a": [-1, 0, 0], "b": [0, 0, 0]})
    return layers(rows)


def look_up(u: Exact, tokens: Exact, values: Exact) -> TokenLayers:
    """`tokens` ẑ (m, D) with distinct ids, and the `values` A (m, D), whole numbers, written in their place."""
    ids = tokens @ u
    order = np.argsort(ids, kind="stable")[::-1]
    tokens, values, ids = as_exact(tokens[order]), as_exact(values[order]), as_exact(ids[order])
    if not bool((ids[1:] < ids[:-1]).all()):
        raise InputError("look_up: two tokens have the same id")
    if len(ids) and not int(np.abs(values @ u).max()) < ids[-1] - 1:
        raise InputError("look_up: a value reaches the ids; scale the values down and undo it in the read-out")
    m = len(ids)
    flat, bump = as_exact(np.zeros((m, 3), dtype=np.int64)), as_exact(np.zeros((m, 3), dtype=np.int64))
    bump[:, 1] = 1
    breaks = np.stack([ids - HALF, ids + HALF], -1)
    return TokenLayers(np.tile(as_exact(u), (m, 1)), values - tokens, breaks, flat, bump)


def value_count(grid: Grid) -> int:
    """1 + d + n·C(δ^{−d}, n), or nδ^{−dn} with places."""
    if grid.places is not None:
        return int(grid.n * grid.Q**grid.n)
    return 1 + grid.d + grid.n * comb(grid.Q, grid.n)
