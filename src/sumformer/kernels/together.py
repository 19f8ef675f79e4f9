"""The kernels of a mixing layer, compiled side by side: each runs once on zeros, for few tokens in all its shapes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from sumformer.kernels import short_mix
from sumformer.kernels.layout import Layout
from sumformer.kernels.products import hidden_by_pass, hidden_tiles, pull, spread, sums, tile_sums
from sumformer.kernels.side_by_side import side_by_side

Weights = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]
"""W_φ, b_φ, W_x, b_x, W_s, W_o, b_o."""


def compile_together(
    x: Tensor, w_phi: Tensor, b_phi: Tensor, w_x: Tensor, b_x: Tensor, w_s: Tensor, w_o: Tensor, name: str, save: bool
) -> None:
    """For x (rows, d), once per dtype and widths."""
    key = (x.dtype, w_phi.shape, w_x.shape, w_o.shape, name, save)
    side_by_side(key, x.device, lambda: steps(x, w_phi, b_phi, w_x, b_x, w_s, w_o, name, save))


def compile_shapes(x: Tensor, weights: Weights, masked: bool, activation: str, mean: bool) -> None:
    """The kernel of few tokens in all its shapes, for any number of them: once per dtype and widths."""
    w_phi, _, w_x, _, _, w_o, _ = weights

    def run(n: int) -> None:
        tokens, layout = x.new_zeros(n, x.shape[1]), Layout(1, n, n)
        keep = tokens.new_ones(1, n, dtype=torch.bool) if masked else None
        shape = short_mix.shape_for(tokens, w_phi, w_x, w_o, layout)
        if shape is not None:
            short_mix.forward(tokens, *weights, keep, layout, activation, mean, False, shape)

    key = (x.dtype, *w_phi.shape, *w_o.shape, masked, activation, mean)
    side_by_side(key, x.device, lambda: [partial(run, n) for n in short_mix.SHAPES])


def steps(
    x: Tensor, w_phi: Tensor, b_phi: Tensor, w_x: Tensor, b_x: Tensor, w_s: Tensor, w_o: Tensor, name: str, save: bool
) -> list[Callable[[], object]]:
    """The slowest first."""
    layout = Layout(1, 128, 128)
    tokens, total = x.new_zeros(128, x.shape[1]), x.new_zeros(1, w_phi.shape[0], dtype=torch.float32)
    g, dy = x.new_zeros(128, w_x.shape[0]), x.new_zeros(128, w_o.shape[0])
    shift, out = total.new_zeros(1, w_x.shape[0]), x.new_empty(128, w_x.shape[0] + w_phi.shape[0])
    forward: list[Callable[[], object]] = [
        lambda: tile_sums(tokens, w_phi, b_phi, name, layout, None, True),
        lambda: hidden_tiles(tokens, w_x, shift, name, layout, save, True),
        lambda: hidden_tiles(tokens, w_x, shift, name, layout, save, False),
        lambda: sums(tokens, w_phi, b_phi, name, layout, None),
        lambda: hidden_by_pass(tokens, w_x, shift, name, layout, save),
        lambda: short_mix.shift(total, w_s, b_x),
    ]
    backward: list[Callable[[], object]] = [
        lambda: pull(dy, w_o, g, shift, name, layout, out[:, : w_x.shape[0]]),
        lambda: spread(tokens, w_phi, b_phi, total, name, layout, None, out[:, w_x.shape[0] :]),
        lambda: short_mix.reach(shift, total, w_s, b_x, 1),
    ]
    return forward + backward if save else forward
