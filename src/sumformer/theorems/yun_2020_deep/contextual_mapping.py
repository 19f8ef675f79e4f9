"""Y Lemma 6: q(L) tells every token of every set of columns from every other, by δ^{−d} + 1 attention layers.

Z ↦ Z + δ^{−d} Ψ(Z; l − δ/2, l + δ/2)   for every id l in increasing order: max − min is added to the token with id l
Z ↦ Z + δ^{−(n+1)d} ψ(Z; 0)             the largest id is added to all

(1) the n ids of q(L) differ;  (2) q(L), q(L') share none unless L' is a permutation of L;  (3) they lie in [t_l, t_r]
for L with distinct columns;  (4) outside for all others, out-of-range ones included.
With places (Y Theorem 3): nδ^{−d} + 1 layers, and 2nδ^{−(n+1)d} in the last one.
"""

from __future__ import annotations

from sumformer.theorems.yun_2020_deep.grid import Grid
from sumformer.theorems.yun_2020_deep.shift_layers import ShiftLayers, shift_layers


def contextual_mapping(grid: Grid, width: int | None = None) -> ShiftLayers:
    """In units of δ: thresholds l ± 1/2, scales δ^{−d} and (2n)δ^{−(n+1)d}."""
    u = (*grid.u, *[0] * ((grid.d if width is None else width) - grid.d))
    bases = sorted(grid.base(j) for j in range(grid.n)) if grid.places is not None else [0]
    ids = [base + cell for base in bases for cell in range(grid.Q)]
    rows = [((1, 1), (2 * own - 1, 2 * own + 1), (grid.Q, grid.Q)) for own in ids]
    last = grid.Q ** (grid.n + 1) * (1 if grid.places is None else 2 * grid.n)
    return shift_layers(u, [*rows, ((1, 0), (0, 0), (last, 0))])


def contextual_count(grid: Grid) -> int:
    """δ^{−d} + 1, or nδ^{−d} + 1 with places."""
    return (1 if grid.places is None else grid.n) * grid.Q + 1


def window(grid: Grid) -> tuple[int, int]:
    """[t_l, t_r] = [δ^{−2nd+1}(δ^{−d} − 1), δ^{−(2n+2)d+1}], in units of δ, for Theorem 2."""
    return grid.Q ** (2 * grid.n) * (grid.Q - 1), int(grid.Q ** (2 * grid.n + 2))
