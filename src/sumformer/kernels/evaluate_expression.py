"""`torch.ops.sumformer.evaluate_expression`: V_t(x) = Σ_α Π_c T_{α_c}(u_c) Q_{α,t}, then a list of scalar instructions.

This is ψ of a constructed network. It has no gradient: where one is asked for, the network runs its own definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from sumformer.kernels.availability import runs_on
from sumformer.kernels.calling import on_device
from sumformer.kernels.feature_sums import CLAMPED, tables
from sumformer.kernels.launch import launch
from sumformer.kernels.scalar_instructions import run

_BLOCK = 128
_interpreted = False  # tests of the kernels on a CPU set this, together with TRITON_INTERPRET=1


def evaluated(
    x: Tensor,
    q: Tensor,
    counts: Tensor,
    centre: Tensor,
    inverse: Tensor,
    constants: Tensor,
    tops: Sequence[int],
    axes: Sequence[int],
    series: Sequence[int],
    code: Sequence[int],
    left: Sequence[int],
    right: Sequence[int],
    results: Sequence[int],
    dtype: torch.dtype,
) -> Tensor:
    """x (batch, n, d) → (batch, n, results). Values: x, then V of every product and series, the count, instructions.

    `axes` holds for each product the number of its axes, then (coordinate, degree) of each; Q is (batch, size), product
    after product, each (α…, series).
    """
    batch, n, d = x.shape
    products = _products(axes)
    if not (_interpreted or runs_on(x)):
        values = [x[..., c].to(centre.dtype) for c in range(d)]
        values += _contract(x, q, centre, inverse, tops, products, series)
        values.append(counts.to(centre.dtype)[:, None].expand(batch, n))
        values = run(values, constants, code, left, right)
        return torch.stack([values[i].expand(batch, n) for i in results], dim=-1).to(dtype)
    import triton.language as tl

    from sumformer.kernels.expression_triton import evaluate

    x, q, counts = x.contiguous(), q.contiguous(), counts.contiguous()
    out = x.new_empty(batch, n, len(results), dtype=dtype)
    grid = (batch * ((n + _BLOCK - 1) // _BLOCK), 1)
    if not out.numel():
        return out
    with on_device(x):
        launch(
            evaluate,
            grid,
            (x, q, counts, centre, inverse, constants, out),
            (n,),
            (),
            (
                *(d, tuple(tops), products, tuple(series), tuple(code), tuple(left), tuple(right), tuple(results)),
                *(q.shape[1], tl.float64 if centre.dtype == torch.float64 else tl.float32, _BLOCK),
            ),
            num_warps=4,
        )
    return out


evaluate_expression = torch.library.custom_op("sumformer::evaluate_expression", mutates_args=())(evaluated)


@evaluate_expression.register_fake
def _(x: Tensor, *rest: Any) -> Tensor:
    results, dtype = rest[-2:]
    return x.new_empty(x.shape[0], x.shape[1], len(results), dtype=dtype)


def _products(axes: Sequence[int]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """The flat list, read back: for each product its (coordinate, degree) pairs."""
    out, at = [], 0
    while at < len(axes):
        pairs = axes[at + 1 : at + 1 + 2 * axes[at]]
        out.append(tuple(zip(pairs[::2], pairs[1::2], strict=True)))
        at += 1 + 2 * axes[at]
    return tuple(out)


def _contract(
    x: Tensor,
    q: Tensor,
    centre: Tensor,
    inverse: Tensor,
    tops: Sequence[int],
    products: Sequence[Sequence[tuple[int, int]]],
    series: Sequence[int],
) -> list[Tensor]:
    """V_t by one matrix product for each product of kernels: the naive twin."""
    table, values, at = tables(x, centre, inverse, tops, CLAMPED), [], 0
    for axes, count in zip(products, series, strict=True):
        size = prod(degree + 1 for _, degree in axes) * count
        rows = table[0].new_ones(*x.shape[:2], 1)
        for c, degree in axes:
            rows = (rows.unsqueeze(-1) * table[c][..., None, : degree + 1]).flatten(-2)
        values += list((rows @ torch.unflatten(q[:, at : at + size], -1, (-1, count))).unbind(-1))
        at += size
    return values
