"""Which of the theorems: its grid for a given 1/δ, its contextual mapping, the size of its numbers, and its counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sumformer.nn.patterns.pattern import Pattern
from sumformer.theorems.yun_2020_deep.contextual_mapping import contextual_count, contextual_mapping, window
from sumformer.theorems.yun_2020_deep.grid import Grid
from sumformer.theorems.yun_2020_deep.magnitude import Magnitude, magnitude
from sumformer.theorems.yun_2020_deep.multisets import Multisets
from sumformer.theorems.yun_2020_deep.network import growth_bits, obstacles, score_bits
from sumformer.theorems.yun_2020_deep.quantise import quantise_count
from sumformer.theorems.yun_2020_deep.shift_layers import ShiftLayers
from sumformer.theorems.yun_2020_deep.token_layers import TokenLayers
from sumformer.theorems.yun_2020_deep.value_mapping import reject, value_count

LOOK_UPS = 24_000
"""Layers of a value mapping that are built; beyond, the construction refuses."""

ROWS = 400_000
"""Multisets of cells on which f is enclosed."""


@dataclass(frozen=True)
class Plan:
    """One theorem for n tokens of width d. `formulas` are the paper's counts, in words."""

    theorem: str
    n: int
    d: int
    grid: Callable[[int], Grid]
    contextual: Callable[[Grid, int], ShiftLayers]
    magnitude: Callable[[Grid], Magnitude]
    attention_count: Callable[[Grid], int]
    formulas: tuple[str, str, str]
    pattern: Pattern | None = None

    def counts(self, grid: Grid) -> dict[str, int]:
        """Layers by the theorems' formulas."""
        return {
            "quantise": quantise_count(grid),
            "contextual mapping": self.attention_count(grid),
            "value mapping": value_count(grid),
        }

    def too_many(self, grid: Grid) -> list[str]:
        """Why a network of this δ is not built in any arithmetic; empty where it is."""
        layers, looked_at = value_count(grid), Multisets(grid.n, grid.Q).size
        reasons = []
        if layers > LOOK_UPS:
            reasons.append(f"{layers} value layers at 1/δ = {grid.q}; at most {LOOK_UPS} are built")
        if looked_at > ROWS:
            reasons.append(f"{looked_at} multisets of cells at 1/δ = {grid.q}; at most {ROWS} are looked at")
        return reasons

    def obstacles(self, grid: Grid) -> list[str]:
        """Why it is not built in float64; empty where it is."""
        reasons = self.too_many(grid)
        if reasons:
            return reasons + obstacles(self.magnitude(grid), LOOK_UPS)
        shifts = self.contextual(grid, grid.d)
        bits = growth_bits(grid, shifts), score_bits(grid, shifts)
        reasons = obstacles(self.magnitude(grid), value_count(grid), *bits)
        call = "exact_transformer(f, ε)" if self.pattern is None else "exact_transformer(f, ε, pattern=…)"
        exact = f"1/δ = {grid.q} is built in exact arithmetic: sumformer.theorems.exact_transformer.{call}"
        return [*reasons, exact] if reasons else []

    def reject(self, contextual: ShiftLayers, grid: Grid) -> TokenLayers | None:
        """Inputs without values of their own go to 0; with places every input has them."""
        if grid.places is not None:
            return None
        return reject(contextual.u, *window(grid), self.magnitude(grid).overall)


def equivariant_plan(n: int, d: int) -> Plan:
    """Y Theorem 2."""
    formulas = ("d/δ + d", "δ^{-d} + 1", "1 + d + n·C(δ^{-d}, n)")
    return Plan("Y Theorem 2", n, d, lambda q: Grid(n, d, q), contextual_mapping, magnitude, contextual_count, formulas)


def position_plan(n: int, d: int) -> Plan:
    """Y Theorem 3: E_j = (j − 1)·1."""
    places = tuple(range(n))
    formulas = ("dn/δ", "nδ^{-d} + 1", "nδ^{-dn}")
    return Plan(
        "Y Theorem 3", n, d, lambda q: Grid(n, d, q, places), contextual_mapping, magnitude, contextual_count, formulas
    )
