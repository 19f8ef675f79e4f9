"""Small networks with random values, and inputs inside the cells."""

from __future__ import annotations

import numpy as np
import torch

from sumformer.theorems.yun_2020_deep.grid import Grid
from sumformer.theorems.yun_2020_deep.network import assemble
from sumformer.theorems.yun_2020_deep.plan import equivariant_plan, position_plan
from sumformer.theorems.yun_2020_deep.quantise import quantise
from sumformer.theorems.yun_2020_sparse.theorem_1 import sparse_plan


def plan_of(n, d, positions=False, pattern=None):
    if pattern is not None:
        return sparse_plan(pattern, n, d)
    return position_plan(n, d) if positions else equivariant_plan(n, d)


def build(n, d, q, outputs=None, positions=False, pattern=None, seed=0):
    """The exact layers, and the values they write, rounded as they are written."""
    plan = plan_of(n, d, positions, pattern)
    grid = plan.grid(q)
    outputs = outputs or d
    width = max(d, outputs)
    contextual = plan.contextual(grid, width)
    values = np.random.default_rng(seed).standard_normal((grid.inputs, n, outputs))
    parts = assemble(
        grid, quantise(grid, width), contextual, plan.reject(contextual, grid), values, plan.magnitude(grid)
    )
    return parts, np.rint(np.ldexp(values, parts.scale)) / 2.0**parts.scale


def inside(grid, e, most=200, seed=1):
    """Points of [0,1]^{n×d} in the cells of `grid.cells()`, off the ramps."""
    rng = np.random.default_rng(seed)
    cells = grid.cells()[:most]
    corner = Grid(grid.n, grid.d, grid.q).tokens(cells)
    return torch.from_numpy((corner + rng.uniform(1e-9, 1 - e - 1e-9, corner.shape)) / grid.q)
