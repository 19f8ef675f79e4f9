"""The two kernels of power sums: a tile, which is all PTX, and the sum over the programs in a fixed order."""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.nvidia.compiler import CUDAOptions

LIGHTLY = {"ptx_options": "-O1"} if "ptx_options" in getattr(CUDAOptions, "__dataclass_fields__", {}) else {}
"""The registers of a tile are taken already; more than -O1 lengthens the lives of values until some do not fit."""


@triton.jit(do_not_specialize=["x", "keep", "partial", "n", "programs", "share", "first_row", "length"])
def tile_sums(
    x, keep, partial, n, programs, share, first_row, length, centre, inverse, TEXT: tl.constexpr, PLACES: tl.constexpr
):
    """Two columns of `partial` for each program: see `power_sums_ptx`."""
    addresses = (x.to(tl.int64), keep.to(tl.int64), partial.to(tl.int64))
    numbers = (n, programs, share, first_row, length, centre, inverse)
    tl.inline_asm_elementwise(TEXT, PLACES, addresses + numbers, dtype=tl.int32, is_pure=False, pack=1)


@triton.jit(do_not_specialize=["length", "columns", "width"])
def add_programs(partial, rows, scales, out, length, columns, width, BLOCK: tl.constexpr):
    """out[b, i] = scales[i] · Σ of rows[0, i] − rows[1, i], unless it is −1, over the columns of sequence b."""
    feature, batch = tl.program_id(0) % width, (tl.program_id(0) // width).to(tl.int64)
    row, minus = tl.load(rows + feature).to(tl.int64), tl.load(rows + width + feature).to(tl.int64)
    first = partial + batch * columns
    total = tl.zeros((BLOCK,), dtype=tl.float64)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(first + row * length + at, mask=at < columns, other=0.0)
        total -= tl.load(first + minus * length + at, mask=(at < columns) & (minus >= 0), other=0.0)
    tl.store(out + batch * width + feature, tl.sum(total, axis=0) * tl.load(scales + feature))
