"""`torch.ops.sumformer.prefix_sum`: out_i = Σ_{k ≤ i} x_k over the tokens of (batch, n, m), or Σ_{k ≥ i}.

Accumulated in float32 by a fixed tree. The gradient of one direction is the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sumformer.kernels.availability import runs_on
from sumformer.kernels.calling import on_device, watched
from sumformer.kernels.launch import launch
from sumformer.kernels.layout import accumulation_dtype
from sumformer.kernels.side_by_side import side_by_side

_ROWS, _COLS = 64, 64
_interpreted = False  # tests of the kernels on a CPU set this, together with TRITON_INTERPRET=1


def prefixes(x: Tensor, reverse: bool) -> Tensor:
    """The same, by the operator where something watches."""
    out: Tensor
    if watched(x):
        out = prefix_sum(x, reverse)
    elif torch.is_grad_enabled() and x.requires_grad:
        out = _Prefixes.apply(x, reverse)  # type: ignore[no-untyped-call]
    else:
        out = summed(x, reverse)
    return out


def summed(x: Tensor, reverse: bool) -> Tensor:
    """(batch, n, m) → the same shape, in float32 (float64 where x is)."""
    if x.dtype == torch.float64 or not (_interpreted or runs_on(x)):
        dtype = accumulation_dtype(x.dtype)
        return x.flip(1).cumsum(1, dtype=dtype).flip(1) if reverse else x.cumsum(1, dtype=dtype)
    from sumformer.kernels.prefix_sum_triton import scan_in_tiles, scan_of_tiles, sum_of_tiles

    x = x.contiguous()
    batch, n, m = x.shape
    tiles, columns = (n + _ROWS - 1) // _ROWS, (m + _COLS - 1) // _COLS
    partial = x.new_empty(batch, tiles, m, dtype=torch.float32)
    before = torch.zeros_like(partial)
    out = x.new_empty(x.shape, dtype=torch.float32)
    if not out.numel():
        return out
    grid, sizes, constants = (tiles * batch, columns), (_ROWS, _COLS), (reverse, _ROWS, _COLS)
    steps: list[Callable[[], object]] = [
        lambda: launch(sum_of_tiles, grid, (x, partial), (n, tiles), (m,), constants, num_warps=4),
        lambda: launch(scan_of_tiles, (batch, columns), (partial, before), (tiles,), (m,), sizes, num_warps=4),
        lambda: launch(scan_in_tiles, grid, (x, before, out), (n, tiles), (m,), constants, num_warps=4),
    ]
    with on_device(x):
        side_by_side((x.dtype, m, reverse), x.device, lambda: steps)
        for step in steps:
            step()
    return out


prefix_sum = torch.library.custom_op("sumformer::prefix_sum", mutates_args=())(summed)


@prefix_sum.register_fake
def _(x: Tensor, reverse: bool) -> Tensor:
    return x.new_empty(x.shape, dtype=accumulation_dtype(x.dtype))


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.reverse, ctx.dtype = inputs[1], inputs[0].dtype


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    out: Tensor = prefix_sum(grad, not ctx.reverse)
    return out.to(ctx.dtype), None


prefix_sum.register_autograd(_backward, setup_context=_remember)


class _Prefixes(torch.autograd.Function):
    """The same without the operator."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, reverse: bool) -> Tensor:
        out = summed(x, reverse)
        _remember(ctx, (x, reverse), out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return prefixes(grad, not ctx.reverse).to(ctx.dtype), None
