"""Y Lemma 5: entries of [0, 1) go to 0, δ, …, 1−δ, all others to −δ^{−nd}, by d/δ + d layers with r = 1.

out of range   t ↦ t + φ(t),      φ(t) = −t − δ^{−nd} for t < 0 or t ≥ 1, else 0              d layers
cells          t ↦ t + φ(t − kδ), φ(t) = −t on [0, δ), else 0;   k = 1/δ − 1, …, 0           d/δ layers

Cells are taken from the last to the first: an entry moves once, and no earlier layer has touched it, so that floating
point rounds nothing. With places entries lie in [0, n): dn/δ layers, and nothing is out of range.
"""

from __future__ import annotations

from sumformer.theorems.yun_2020_deep.grid import Grid
from sumformer.theorems.yun_2020_deep.token_layers import TokenLayers, layers, unit


def quantise(grid: Grid, width: int | None = None) -> TokenLayers:
    """In units of δ. `width` D ≥ d: further coordinates stay as they are."""
    width = grid.d if width is None else width
    cells = grid.q if grid.places is None else grid.n * grid.q
    rows = []
    if grid.places is None:
        for i in range(grid.d):
            away = {"a": [-1, 0, -1], "b": [-grid.outside, 0, -grid.outside]}
            rows.append({"w1": unit(width, i), "w2": unit(width, i), "c": [0, grid.q], **away})
    for i in range(grid.d):
        for k in reversed(range(cells)):
            back = {"a": [0, -1, 0], "b": [0, k, 0]}
            rows.append({"w1": unit(width, i), "w2": unit(width, i), "c": [k, k + 1], **back})
    return layers(rows)


def quantise_count(grid: Grid) -> int:
    """d/δ + d, or dn/δ with places."""
    return grid.d * grid.q + grid.d if grid.places is None else grid.d * grid.n * grid.q
