"""v = f(g) over the rows of a product g, with the column sums of v over each sequence taken on the way.

WHAT = 0   v = σ(z),             z = g + shift[sequence]
WHAT = 1   v = y · σ′(z)         BESIDE: and the column sums of `beside`
WHAT = 2   v = σ′(z) · scale[sequence]

Each tile belongs to one sequence. Its sums are one row of `partial` (those of `beside` behind them); `sum_tiles` adds
these rows in an order that depends on the number of tiles alone: no atomics. Nothing is compiled for a length.
"""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import triton
import triton.language as tl

from sumformer.kernels.activations_triton import slope, value

LENGTHS = ["length", "tiles_per_sequence", "tile_rows", "keep"]


@triton.jit
def place_of(tile, tiles, length, tiles_per_sequence, tile_rows, PACKED: tl.constexpr):
    """First row, end and sequence of a tile."""
    if PACKED:
        first = tl.load(tiles + 3 * tile)
        end = tl.load(tiles + 3 * tile + 1)
        sequence = tl.load(tiles + 3 * tile + 2)
    else:
        sequence = tile // tiles_per_sequence
        first = sequence * length + (tile % tiles_per_sequence) * tile_rows
        end = sequence * length + length
    return first, tl.minimum(end, first + tile_rows), sequence


@triton.jit(do_not_specialize=LENGTHS)
def activation_pass(
    g,
    y,
    beside,
    out,
    shift,
    scale,
    keep,
    partial,
    tiles,
    length,
    tiles_per_sequence,
    tile_rows,
    out_stride,
    shift_stride,
    partial_stride,
    width,
    WHAT: tl.constexpr,
    ACT: tl.constexpr,
    FAST: tl.constexpr,
    STORE: tl.constexpr,
    SUMS: tl.constexpr,
    BESIDE: tl.constexpr,
    MASKED: tl.constexpr,
    PACKED: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    STAGES: tl.constexpr,
):
    """A tile goes by in steps of ROWS rows; STAGES of them are on their way at a time."""
    tile = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    first, end, sequence = place_of(tile, tiles, length, tiles_per_sequence, tile_rows, PACKED)
    height = end - first
    narrow = cols < width
    added = tl.load(shift + sequence.to(tl.int64) * shift_stride + cols, mask=narrow, other=0.0).to(tl.float32)[None, :]
    if WHAT == 2:
        factor = tl.load(scale + sequence.to(tl.int64) * width + cols, mask=narrow, other=0.0).to(tl.float32)[None, :]
    begin = first.to(tl.int64)
    g += begin * width
    y += begin * width
    beside += begin * width
    out += begin * out_stride
    acc = tl.zeros((ROWS, COLS), dtype=tl.float32)
    more = tl.zeros((ROWS, COLS), dtype=tl.float32)
    for start in tl.range(0, height, ROWS, num_stages=STAGES):
        rows = start + tl.arange(0, ROWS)
        real = rows < height
        inside = real[:, None] & narrow[None, :]
        place = rows[:, None] * width + cols[None, :]
        z = tl.load(g + place, mask=inside, other=0.0).to(tl.float32) + added
        if BESIDE:
            more += tl.load(beside + place, mask=inside, other=0.0).to(tl.float32)
        if WHAT == 0:
            v = value(z, ACT, FAST)
        elif WHAT == 1:
            v = tl.load(y + place, mask=inside, other=0.0).to(tl.float32) * slope(z, ACT, FAST)
        else:
            v = slope(z, ACT, FAST) * factor
        if MASKED:
            real = tl.load(keep + first + rows, mask=real, other=0) != 0
        if MASKED or (SUMS and WHAT != 1):
            v = tl.where(real[:, None], v, 0.0)
        if SUMS:
            acc += v
        if STORE:
            target = out + rows[:, None] * out_stride + cols[None, :]
            tl.store(target, v.to(out.dtype.element_ty), mask=inside)
    row = partial + tile.to(tl.int64) * partial_stride + cols
    if SUMS:
        tl.store(row, tl.sum(acc, axis=0), mask=narrow)
    if BESIDE:
        tl.store(row + width, tl.sum(more, axis=0), mask=narrow)


@triton.jit(do_not_specialize=["tiles_per_sequence", "factor"])
def sum_tiles(
    partial,
    total,
    ends,
    tiles_per_sequence,
    factor,
    width,
    PACKED: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """total[s] = factor · the sum of the rows of `partial` that belong to sequence s."""
    sequence = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    if PACKED:
        first = tl.load(ends + sequence)
        last = tl.load(ends + sequence + 1)
    else:
        first = sequence * tiles_per_sequence
        last = first + tiles_per_sequence
    acc = tl.zeros((ROWS, COLS), dtype=tl.float32)
    for start in range(first, last, ROWS):
        rows = start + tl.arange(0, ROWS)
        inside = (rows < last)[:, None] & (cols < width)[None, :]
        acc += tl.load(partial + rows.to(tl.int64)[:, None] * width + cols[None, :], mask=inside, other=0.0)
    tl.store(total + sequence.to(tl.int64) * width + cols, tl.sum(acc, axis=0) * factor, mask=cols < width)
