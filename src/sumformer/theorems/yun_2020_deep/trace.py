"""The ids of all tokens after every attention layer, exactly: shifts push them apart, and the last layer lifts them.

Ids are in units of δ. `moved` marks the layers that change one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sumformer.errors import InputError
from sumformer.theorems.yun_2020_deep.grid import Grid, as_exact
from sumformer.theorems.yun_2020_deep.quantise import quantise
from sumformer.theorems.yun_2020_deep.shift_layers import ShiftLayers


@dataclass(frozen=True)
class Trace:
    """`ids[k]` are those of the n tokens after k layers, `what[k]` names the k-th layer (the 0-th is quantise)."""

    grid: Grid
    tokens: tuple[tuple[Fraction, ...], ...]
    ids: tuple[tuple[int | Fraction, ...], ...]
    what: tuple[str, ...]

    @property
    def moved(self) -> tuple[bool, ...]:
        """Whether the layer changed an id; the first row, the quantised input, counts."""
        return (True, *(a != b for a, b in zip(self.ids, self.ids[1:], strict=False)))


def trace(grid: Grid, contextual: ShiftLayers, tokens: Sequence[Sequence[Fraction]]) -> Trace:
    """From tokens in the unit box, any rationals, through quantise and the contextual mapping."""
    exact = as_exact([[Fraction(v) for v in token] for token in tokens])
    if exact.shape != (grid.n, grid.d):
        raise InputError(f"trace: expected {grid.n} tokens of {grid.d} numbers, got {exact.shape}")
    start = exact * grid.q
    if grid.places is not None:
        start = start + grid.q * as_exact(grid.places)[:, None]
    z = quantise(grid)(start)[None]
    states = [z, *contextual.states(z)]
    ids = tuple(tuple(_short(v) for v in (state @ contextual.u)[0]) for state in states)
    names = tuple(_name(contextual, k) for k in range(len(contextual)))
    return Trace(grid, tuple(tuple(row) for row in exact), ids, ("quantise", *names))


def spread_tokens(n: int, d: int) -> list[list[Fraction]]:
    """n tokens along the diagonal, away from the edges of cells: (2j + 1)/2n, from the largest down."""
    return [[Fraction(2 * j + 1, 2 * n)] * d for j in reversed(range(n))]


def _short(value: int | Fraction) -> int | Fraction:
    exact = Fraction(value)
    return int(exact) if exact.denominator == 1 else exact


def _name(layers: ShiftLayers, l: int) -> str:  # noqa: E741
    scale, step = layers.s[l], f", step {layers.step[l]}" if layers.pattern is not None and layers.pattern.p > 1 else ""
    if not np.any(scale != 0):
        return f"idle{step}"
    if scale[1]:
        return f"shift id {(layers.b2[l, 0] + 1) // 2}{step}"
    return f"add {scale[0]} × largest{step}"
