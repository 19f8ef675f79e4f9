"""Two products that end in σ, where nothing else is written, each one kernel:

Σ_s = Σ_{k in s} σ(W_φ x_k + b_φ)   σ, mask and sum in the product's tile        h_i = σ(W_x x_i + shift_s)

Each tile of BM rows belongs to one sequence and leaves one row of `partial`; whoever adds these rows does so in an
order that depends on their number alone. A sum's tile is W_φ xᵀ: rows of x lie along the axis that a warp holds, and
most of the sum stays in its registers. Operands come by the tensor memory accelerator.
"""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import triton
import triton.language as tl

from sumformer.kernels.activations_triton import value
from sumformer.kernels.pass_triton import place_of


@triton.jit
def tile_sums(
    acc, row, first, end, col, b, keep, width, ACT: tl.constexpr, FAST: tl.constexpr, MASKED: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """row[col …] = the sums of σ(acc + b), acc (BN, BM), over the rows of x before `end`, but for those not kept."""
    rows = first + tl.arange(0, BM)
    cols = col + tl.arange(0, BN)
    real = rows < end
    if MASKED:
        real = tl.load(keep + rows, mask=real, other=0) != 0
    v = value(acc + tl.load(b + cols, mask=cols < width, other=0.0).to(tl.float32)[:, None], ACT, FAST)
    tl.store(row + cols, tl.sum(tl.where(real[None, :], v, 0.0), axis=1), mask=cols < width)


@triton.jit
def corner(program, count, columns, GROUP: tl.constexpr):
    """Tile of rows and of columns; GROUP tiles of rows go over the columns together."""
    group = program // (GROUP * columns)
    height = tl.minimum(count - group * GROUP, GROUP)
    inside = program % (GROUP * columns)
    return group * GROUP + inside % height, inside // height


@triton.jit(do_not_specialize=["length", "tiles_per_sequence", "count", "keep"])
def long_sums(
    x,
    w,
    b,
    keep,
    partial,
    tiles,
    length,
    tiles_per_sequence,
    count,
    width,
    depth,
    ACT: tl.constexpr,
    FAST: tl.constexpr,
    MASKED: tl.constexpr,
    PACKED: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    """x (rows, depth) and w (width, depth) are descriptors."""
    columns = tl.cdiv(width, BN)
    for program in tl.range(tl.program_id(0), count * columns, tl.num_programs(0), flatten=True):
        tile, column = corner(program, count, columns, GROUP)
        first, end, _ = place_of(tile, tiles, length, tiles_per_sequence, BM, PACKED)
        acc = tl.zeros((BN, BM), dtype=tl.float32)
        for k in range(0, depth, BK):
            acc = tl.dot(w.load([column * BN, k]), x.load([first, k]).T, acc, input_precision=PRECISION)
        row = partial + tile.to(tl.int64) * width
        tile_sums(acc, row, first, end, column * BN, b, keep, width, ACT, FAST, MASKED, BM, BN)


@triton.jit
def half_hidden(acc, h, g, shift, first, col, width, ACT: tl.constexpr, FAST: tl.constexpr, SAVE: tl.constexpr):
    """Half a tile of h, and of g where asked for; `shift` is the row of the tile's sequence."""
    cols = col + tl.arange(0, acc.shape[1])
    z = acc + tl.load(shift + cols, mask=cols < width, other=0.0)[None, :]
    h.store([first, col], value(z, ACT, FAST).to(h.dtype))
    if SAVE:
        g.store([first, col], acc.to(g.dtype))


@triton.jit(do_not_specialize=["tiles_per_sequence", "count"])
def long_hidden(
    x,
    w,
    h,
    g,
    shift,
    tiles_per_sequence,
    count,
    width,
    depth,
    ACT: tl.constexpr,
    FAST: tl.constexpr,
    SAVE: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    """x (rows, depth), w (width, depth), h and g (rows, width) are descriptors: nothing behind an end is written."""
    columns = tl.cdiv(width, BN)
    for program in tl.range(tl.program_id(0), count * columns, tl.num_programs(0), flatten=True):
        tile, column = corner(program, count, columns, GROUP)
        first, col = tile * BM, column * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, depth, BK):
            acc = tl.dot(x.load([first, k]), w.load([col, k]).T, acc, input_precision=PRECISION)
        left, right = tl.split(tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1)))
        own = shift + (tile // tiles_per_sequence).to(tl.int64) * width
        half_hidden(left, h, g, own, first, col, width, ACT, FAST, SAVE)
        half_hidden(right, h, g, own, first, col + BN // 2, width, ACT, FAST, SAVE)


@triton.jit
def product(x, w, rows, cols, height, breadth, depth, BK: tl.constexpr, PRECISION: tl.constexpr):
    """x[rows] w[cols]ᵀ, 0 where a row is not below `height` or a column not below `breadth`; BK divides depth."""
    inner = tl.arange(0, BK)
    left = x + rows[:, None] * depth + inner[None, :]
    right = w + cols[None, :] * depth + inner[:, None]
    above = (rows < height)[:, None]
    before = (cols < breadth)[None, :]
    acc = tl.zeros((rows.shape[0], cols.shape[0]), dtype=tl.float32)
    for _ in range(0, depth, BK):
        a = tl.load(left, mask=above, other=0.0)
        acc = tl.dot(a, tl.load(right, mask=before, other=0.0), acc, input_precision=PRECISION)
        left += BK
        right += BK
    return acc
