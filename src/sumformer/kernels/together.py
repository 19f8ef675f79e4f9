"""The kernels of a mixing layer over many tokens, compiled side by side: each step runs once on a tile of zeros."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from sumformer.kernels import short_mix
from sumformer.kernels.layout import Layout
from sumformer.kernels.products import hidden, pull, spread, sums
from sumformer.kernels.side_by_side import side_by_side


def compile_together(
    x: Tensor, w_phi: Tensor, b_phi: Tensor, w_x: Tensor, b_x: Tensor, w_s: Tensor, w_o: Tensor, name: str, save: bool
) -> None:
    """For x (rows, d), once per dtype and widths."""
    key = (x.dtype, w_phi.shape, w_x.shape, w_o.shape, name, save)
    side_by_side(key, x.device, lambda: steps(x, w_phi, b_phi, w_x, b_x, w_s, w_o, name, save))


def steps(
    x: Tensor, w_phi: Tensor, b_phi: Tensor, w_x: Tensor, b_x: Tensor, w_s: Tensor, w_o: Tensor, name: str, save: bool
) -> list[Callable[[], object]]:
    """The slowest first."""
    layout = Layout(1, 128, 128)
    tokens, total = x.new_zeros(128, x.shape[1]), x.new_zeros(1, w_phi.shape[0], dtype=torch.float32)
    g, dy = x.new_zeros(128, w_x.shape[0]), x.new_zeros(128, w_o.shape[0])
    shift, out = total.new_zeros(1, w_x.shape[0]), x.new_empty(128, w_x.shape[0] + w_phi.shape[0])
    forward: list[Callable[[], object]] = [
        lambda: sums(tokens, w_phi, b_phi, name, layout, None),
        lambda: hidden(tokens, w_x, shift, name, layout, save),
        lambda: short_mix.shift(total, w_s, b_x),
    ]
    backward: list[Callable[[], object]] = [
        lambda: pull(dy, w_o, g, shift, name, layout, out[:, : w_x.shape[0]]),
        lambda: spread(tokens, w_phi, b_phi, total, name, layout, None, out[:, w_x.shape[0] :]),
        lambda: short_mix.reach(shift, total, w_s, b_x, 1),
    ]
    return forward + backward if save else forward
