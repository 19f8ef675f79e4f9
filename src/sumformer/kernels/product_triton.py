"""Σ_s = Σ_{k in s} σ(W_φ x_k + b_φ) as one kernel: σ, mask and column sum in the product's tile, never written.

Each tile of BM rows belongs to one sequence and leaves one row of `partial`; whoever adds these rows does so in an
order that depends on their number alone. `long_sums` keeps two programs on a multiprocessor, so that one multiplies
while the other applies σ; its operands come by the tensor memory accelerator. `short_products` also writes g = W_x x,
in the same launch: for few tokens, where launches count.
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
    """row[col …] = the column sums of σ(acc + b) over the rows before `end`, but for those not kept."""
    rows = first + tl.arange(0, BM)
    cols = col + tl.arange(0, BN)
    real = rows < end
    if MASKED:
        real = tl.load(keep + rows, mask=real, other=0) != 0
    v = value(acc + tl.load(b + cols, mask=cols < width, other=0.0).to(tl.float32)[None, :], ACT, FAST)
    tl.store(row + cols, tl.sum(tl.where(real[:, None], v, 0.0), axis=0), mask=cols < width)


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
    """x (rows, depth) and w (width, depth) are descriptors; GROUP tiles of rows go over the columns together."""
    columns = tl.cdiv(width, BN)
    for program in tl.range(tl.program_id(0), count * columns, tl.num_programs(0), flatten=True):
        group = program // (GROUP * columns)
        height = tl.minimum(count - group * GROUP, GROUP)
        inside = program % (GROUP * columns)
        tile = group * GROUP + inside % height
        col = (inside // height) * BN
        first, end, _ = place_of(tile, tiles, length, tiles_per_sequence, BM, PACKED)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, depth, BK):
            acc = tl.dot(x.load([first, k]), w.load([col, k]).T, acc, input_precision=PRECISION)
        row = partial + tile.to(tl.int64) * width
        tile_sums(acc, row, first, end, col, b, keep, width, ACT, FAST, MASKED, BM, BN)


@triton.jit
def product(x, w, rows, cols, depth, BK: tl.constexpr, PRECISION: tl.constexpr):
    """x[rows] w[cols]ᵀ, depth a multiple of BK."""
    inner = tl.arange(0, BK)
    left = x + rows[:, None] * depth + inner[None, :]
    right = w + cols[None, :] * depth + inner[:, None]
    acc = tl.zeros((rows.shape[0], cols.shape[0]), dtype=tl.float32)
    for _ in range(0, depth, BK):
        acc = tl.dot(tl.load(left), tl.load(right), acc, input_precision=PRECISION)
        left += BK
        right += BK
    return acc


@triton.jit(do_not_specialize=["rows", "length", "tiles_per_sequence", "keep"])
def short_products(
    x,
    w_phi,
    b_phi,
    w_x,
    g,
    keep,
    partial,
    rows,
    length,
    tiles_per_sequence,
    latent,
    width,
    depth,
    ACT: tl.constexpr,
    FAST: tl.constexpr,
    MASKED: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """The first latent/BN programs of a tile take its sums, the other width/BN write g; all three divide."""
    tile = tl.program_id(0)
    place = tl.program_id(1)
    first, end, _ = place_of(tile, x, length, tiles_per_sequence, BM, False)
    own = first + tl.arange(0, BM)
    there = tl.minimum(own, rows - 1)
    if place < latent // BN:
        col = place * BN
        acc = product(x, w_phi, there, col + tl.arange(0, BN), depth, BK, PRECISION)
        tile_sums(acc, partial + tile * latent, first, end, col, b_phi, keep, latent, ACT, FAST, MASKED, BM, BN)
    else:
        cols = (place - latent // BN) * BN + tl.arange(0, BN)
        acc = product(x, w_x, there, cols, depth, BK, PRECISION)
        tl.store(g + own[:, None] * width + cols[None, :], acc.to(g.dtype.element_ty), mask=(own < end)[:, None])
