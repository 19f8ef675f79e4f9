"""S Theorem 1: for f continuous, ε > 0 and a pattern that meets Assumption 1 there is a sparse g with d_p(f, g) ≤ ε.

Attention is along the O(n) connections of the pattern, softmax as ρ (Assumption 2); γ and the reach s are found.
There are positions, so that nothing is said of g where a token lies outside the box, and it is not 0 there.
"""

from __future__ import annotations

from functools import partial

from sumformer.errors import InputError
from sumformer.nn.patterns.pattern import Pattern
from sumformer.nn.patterns.window import Window
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.built import Built
from sumformer.theorems.yun_2020_deep.certified import Progress, certified
from sumformer.theorems.yun_2020_deep.grid import Grid
from sumformer.theorems.yun_2020_deep.plan import Plan
from sumformer.theorems.yun_2020_deep.shift_layers import ShiftLayers
from sumformer.theorems.yun_2020_deep.theorem_2 import exact_tokens
from sumformer.theorems.yun_2020_sparse.contextual_mapping import (
    sparse_contextual_mapping,
    sparse_count,
    sparse_grid,
    sparse_magnitude,
)


def sparse_transformer(
    f: Target,
    epsilon: float,
    arithmetic: Arithmetic | None = None,
    route: str | None = None,
    *,
    p: float = 1.0,
    pattern: Pattern | None = None,
    fused: bool = False,
    progress: Progress = None,
) -> Built:
    """The sparse Transformer for f on exactly n ≥ 2 tokens along `pattern` (by default a window of 1)."""
    n = exact_tokens(f, "sparse-transformer", arithmetic, route)
    if pattern is not None and not isinstance(pattern, Pattern):
        raise InputError(
            f"construct: expected a pattern, as strided:2 or sumformer.nn.patterns.Strided(2), got {pattern!r}"
        )
    plan = sparse_plan(Window(1) if pattern is None else pattern, n, f.input_box.d)
    return certified(plan, f, epsilon, p, "sparse-transformer", fused, progress)


def sparse_plan(pattern: Pattern, n: int, d: int) -> Plan:
    """A refusal names the clause of Assumption 1 that the pattern violates."""

    def contextual(grid: Grid, width: int) -> ShiftLayers:
        return sparse_contextual_mapping(grid, pattern, width)

    return Plan(
        "S Theorem 1",
        n,
        d,
        partial(sparse_grid, pattern, n, d),
        contextual,
        lambda grid: sparse_magnitude(grid, pattern),
        lambda grid: sparse_count(grid, pattern),
        ("dn/δ", "p(n−1)/δ^d + s", "nδ^{-dn}"),
        pattern,
    )
