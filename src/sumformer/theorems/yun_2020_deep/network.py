"""g = read-out ∘ value mapping ∘ contextual mapping ∘ quantise: the whole network, exactly and in float64.

The read-out undoes the scale of the written values, c A rounded to whole numbers, after layers that cut each output to
the range of the values: what the ramps do to an input is bounded by that range, whatever the magnitudes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log2

import numpy as np
import torch
from torch import Tensor, nn

from sumformer.errors import RefusedError
from sumformer.nn.deep_transformer import DeepTransformer
from sumformer.nn.network_operations import as_float
from sumformer.nn.positions import LearnedPositions
from sumformer.nn.token_head import TokenHead
from sumformer.nn.token_stack import TokenStack
from sumformer.nn.vector_embedding import VectorEmbedding
from sumformer.targets.domain import Box
from sumformer.theorems.yun_2020_deep.four_relus import piece_stack, relu_stack
from sumformer.theorems.yun_2020_deep.grid import Exact, Grid, as_exact
from sumformer.theorems.yun_2020_deep.hardmax_to_softmax import LARGEST_ID, TEMPERATURE, attention_blocks
from sumformer.theorems.yun_2020_deep.magnitude import EXACT, Magnitude
from sumformer.theorems.yun_2020_deep.shift_layers import ShiftLayers
from sumformer.theorems.yun_2020_deep.token_layers import TokenLayers, layers, unit
from sumformer.theorems.yun_2020_deep.value_mapping import look_up

RAMP = Fraction(1, 4)
"""The ramps of value layers, which no whole id meets."""
INT64 = 2**62
MOST_BITS = 900
MOST_SCORE_BITS = 1020


@dataclass(frozen=True)
class Layers:
    """The five programs of a network on width D, exact; values carry the factor 2^`scale`."""

    grid: Grid
    quantise: TokenLayers
    contextual: ShiftLayers
    reject: TokenLayers | None
    look_up: TokenLayers
    clip: TokenLayers
    scale: int
    outputs: int
    magnitude: Magnitude

    @property
    def width(self) -> int:
        return len(self.contextual.u)

    @property
    def token_wise(self) -> tuple[TokenLayers, ...]:
        """What follows the contextual mapping."""
        return (*(() if self.reject is None else (self.reject,)), self.look_up, self.clip)

    def __call__(self, z: Exact, fused: bool = False) -> Exact:
        """Exactly: tokens (batch, n, d) in units of δ, places not yet added → values (batch, n, outputs)."""
        z = as_exact(z)
        if self.grid.places is not None:
            z = z + self.grid.q * as_exact(self.grid.places)[:, None]
        rest = as_exact(np.zeros((*z.shape[:-1], self.width - z.shape[-1]), dtype=np.int64))
        z = self.contextual(self.quantise(np.concatenate([z, rest], -1)))
        for part in self.token_wise:
            z = part.fused(z) if fused and part is self.look_up else part(z)
        return np.asarray(z[..., : self.outputs] * Fraction(1, 2) ** self.scale)


def assemble(
    grid: Grid,
    quantise: TokenLayers,
    contextual: ShiftLayers,
    reject: TokenLayers | None,
    values: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    magnitude: Magnitude,
) -> Layers:
    """`values` (inputs, n, outputs) for the rows of `grid.cells()`."""
    width, outputs = len(contextual.u), values.shape[-1]
    if not len(values):
        raise RefusedError(f"{grid.Q} cells cannot hold {grid.n} tokens apart", ["use a smaller δ"])
    exact = magnitude.inside >= INT64
    start = grid.tokens(grid.cells()).astype(object if exact else np.int64)
    rest = np.zeros((*start.shape[:-1], width - grid.d), dtype=start.dtype)
    tokens = contextual(np.concatenate([start, rest], -1)).reshape(-1, width)
    flat = values.reshape(-1, outputs)
    scale = _scale(tokens @ contextual.u.astype(tokens.dtype), contextual.u, flat)
    whole = np.zeros((len(flat), width))
    whole[:, :outputs] = np.rint(np.ldexp(flat, scale))
    written = as_exact(np.vectorize(int, otypes=[object])(whole))
    table = look_up(contextual.u, tokens, written)
    ends = [(min(0, int(v.min())), max(0, int(v.max()))) for v in written[:, :outputs].T]
    once = clip(width, ends)
    cut = once
    for _ in range(clip_rounds(grid, contextual) - 1):
        cut = cut + once
    return Layers(grid, quantise, contextual, reject, table, cut, scale, outputs, magnitude)


def growth_bits(grid: Grid, contextual: ShiftLayers) -> float:
    """log₂ of a crude bound on what any input in the box, on ramps too, can become: heads give mixtures of ids."""
    start = grid.n * grid.q * sum(grid.u)
    return float(log2(start) + sum(log2(1 + int(a) + int(b)) for a, b in contextual.s) + 80)


def score_bits(grid: Grid, contextual: ShiftLayers) -> float:
    """log₂ of a bound on the scores q·k of such inputs: past 2^1024 a softmax is no number.

    Both are ids before the last layer; n q Σu grows to its third power at most on the quantiser's ramps.
    """
    start = grid.n * grid.q * sum(grid.u)
    growth = sum(log2(1 + int(a) + int(b)) for a, b in contextual.s[:-1])
    return float(2 * (3 * log2(start) + growth) + log2(TEMPERATURE))


def clip_rounds(grid: Grid, contextual: ShiftLayers) -> int:
    """How often to cut: z + (low − z) is low up to a rounding of z, so each time 2^50 of the excess is left of 1."""
    return 1 + ceil(growth_bits(grid, contextual) / 50)


def clip(width: int, ends: list[tuple[int, int]]) -> TokenLayers:
    """z_i ↦ min(max(z_i, low), high): continuous, so that two of four ReLUs do it exactly."""
    rows = []
    for i, (low, high) in enumerate(ends):
        row = {"w1": unit(width, i), "w2": unit(width, i), "c": [low, max(high, low + 1)]}
        rows.append({**row, "a": [-1, 0, -1], "b": [low, 0, max(high, low + 1)]})
    return layers(rows)


def _scale(ids: Exact, u: Exact, values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> int:
    """The largest k with |uᵀ 2^k A| well below the least id, and |2^k A| < 2^50."""
    weights = np.zeros(values.shape[1])
    shared = min(len(u), values.shape[1])
    weights[:shared] = [float(v) for v in u[:shared]]
    reach = max(float((np.abs(values) @ weights).max()), 2.0**-60)
    room = min(float(ids.min()) / 4, 2.0**48)
    if not room > 1 + float(weights.sum()):
        raise RefusedError("the ids leave no room for values", ["use a smaller δ"])
    largest = max(float(np.abs(values).max()), 2.0**-60)
    return int(np.floor(min(np.log2(room / reach), 48 - np.log2(largest), 60)))


def obstacles(largest: Magnitude, layers: int, bits: float = 0.0, scores: float = 0.0) -> list[str]:
    """Why float64 cannot represent a network whose values get so large, over so many look-up layers.

    64·|value| < 2^53: whole numbers, and ReLUs on them, are exact where it matters. 16·layers·|value| < 2^53: on ramps,
    where they are not, the roundings of all layers together do not make a value grow by more than a factor.
    """
    reasons = []
    if largest.before >= LARGEST_ID:
        reasons.append(
            f"ids of {as_float(largest.before):.2g} δ meet in an attention layer; at most 2^50 may in float64"
        )
    if 64 * largest.overall >= EXACT or 16 * (layers + 8) * largest.inside >= EXACT:
        reach = f"values reach {as_float(largest.overall):.2g} δ over {layers} layers"
        reasons.append(f"{reach}, which float64 does not represent")
    if bits > MOST_BITS:
        reasons.append(f"on ramps, values of up to 2^{bits:.0f} δ cannot be excluded; float64 ends at 2^1024")
    if scores > MOST_SCORE_BITS:
        reasons.append(f"on ramps, scores of up to 2^{scores:.0f} cannot be excluded; float64 ends at 2^1024")
    return reasons


def deep_network(
    parts: Layers, box: Box, e: Fraction | None, temperature: int = TEMPERATURE, fused: bool = False
) -> DeepTransformer:
    """The network in float64: softmax and four ReLUs with quantising ramps e, or for None hardmax and three pieces."""
    bits = (growth_bits(parts.grid, parts.contextual), score_bits(parts.grid, parts.contextual))
    if reasons := obstacles(parts.magnitude, len(parts.look_up), *bits):
        raise RefusedError("this case is not representable in float64", reasons)

    def stack(part: TokenLayers, ramp: Fraction, searched: bool = False) -> TokenStack:
        return piece_stack(part, searched) if e is None else relu_stack(part, ramp, searched)

    table = parts.look_up
    if e is not None:  # the ramp lies inside the bump, so that bumps do not meet
        breaks = table.c + np.array([RAMP, 0], dtype=object)
        table = TokenLayers(table.w1, table.w2, breaks, table.a, table.b)
    modules: list[nn.Module] = [stack(parts.quantise, RAMP if e is None else e)]
    modules += attention_blocks(parts.contextual, None if e is None else temperature)
    modules += [] if parts.reject is None else [stack(parts.reject, RAMP)]
    modules += [stack(table, RAMP, fused), stack(parts.clip, RAMP)]
    grid = parts.grid
    positions = None if grid.places is None else _positions(grid, parts.width)
    head = _head(parts.width, parts.outputs, 2.0**-parts.scale)
    network = DeepTransformer(grid.n, _embedding(grid, box, parts.width), modules, head, positions)
    return network.to(torch.float64).eval().requires_grad_(False)


def _embedding(grid: Grid, box: Box, width: int) -> VectorEmbedding:
    """x ↦ q (x − lower)/(upper − lower), the box in units of δ; further coordinates are 0."""
    slope = [grid.q / (high - low) for low, high in zip(box.lower, box.upper, strict=True)]
    layer = VectorEmbedding(grid.d, width).to(torch.float64)
    with torch.no_grad():
        layer.map.weight.zero_()
        layer.map.bias.zero_()
        layer.map.weight[: grid.d].copy_(torch.diag(_floats(slope)))
        layer.map.bias[: grid.d].copy_(_floats([-a * low for a, low in zip(slope, box.lower, strict=True)]))
    return layer


def _positions(grid: Grid, width: int) -> LearnedPositions:
    assert grid.places is not None
    layer = LearnedPositions(grid.n, width).to(torch.float64)
    with torch.no_grad():
        layer.table.zero_()
        layer.table[:, : grid.d] = _floats([Fraction(grid.q * place) for place in grid.places])[:, None]
    return layer


def _head(width: int, outputs: int, factor: float) -> TokenHead:
    layer = TokenHead(width, outputs).to(torch.float64)
    with torch.no_grad():
        layer.map.weight.copy_(factor * torch.eye(outputs, width, dtype=torch.float64))
        layer.map.bias.zero_()
    return layer


def _floats(values: list[Fraction]) -> Tensor:
    return torch.tensor([float(v) for v in values], dtype=torch.float64)
