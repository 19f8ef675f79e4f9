"""`torch.ops.sumformer.prefix_sum`: out_i = Σ_{k ≤ i} x_k over the tokens of (batch, n, m), or Σ_{k ≥ i}.

Accumulated in float32 by a fixed tree. The gradient of one direction is the other.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sumformer.kernels.availability import runs_on
from sumformer.kernels.calling import on_device
from sumformer.kernels.layout import accumulation_dtype

_ROWS, _COLS = 64, 64
_interpreted = False  # tests of the kernels on a CPU set this, together with TRITON_INTERPRET=1


@torch.library.custom_op("sumformer::prefix_sum", mutates_args=())
def prefix_sum(x: Tensor, reverse: bool) -> Tensor:
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
    sizes = {"ROWS": _ROWS, "COLS": _COLS, "num_warps": 4}
    if not out.numel():
        return out
    with on_device(x):
        sum_of_tiles[(tiles * batch, columns)](x, partial, n, m, tiles, REVERSE=reverse, **sizes)
        scan_of_tiles[(batch, columns)](partial, before, m, tiles, **sizes)
        scan_in_tiles[(tiles * batch, columns)](x, before, out, n, m, tiles, REVERSE=reverse, **sizes)
    return out


@prefix_sum.register_fake
def _(x: Tensor, reverse: bool) -> Tensor:
    return x.new_empty(x.shape, dtype=accumulation_dtype(x.dtype))


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.reverse, ctx.dtype = inputs[1], inputs[0].dtype


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    out: Tensor = prefix_sum(grad, not ctx.reverse)
    return out.to(ctx.dtype), None


prefix_sum.register_autograd(_backward, setup_context=_remember)
