"""The mixing layer over few tokens, where launches are what costs: one kernel, whose programs meet between its steps.

Σ_tile σ(W_φ x + b_φ) and g = W_x x   ·   Σ, shift = W_s Σ + b, h = σ(g + shift)   ·   y = W_o h + b_o

All programs must run at a time (a cooperative launch), so that nothing else may hold multiprocessors and wait for what
comes later: among joined processes it is not used. They count themselves in `counter`, which is 0 before and after.
"""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import triton
import triton.language as tl

from sumformer.kernels.columns_triton import mix_strip
from sumformer.kernels.pass_triton import place_of
from sumformer.kernels.product_triton import product, tile_sums


@triton.jit
def meet(counter, count):
    """What any program wrote before is seen by every program behind this, once `count` have come."""
    tl.debug_barrier()
    seen = tl.atomic_add(counter, 1, sem="acq_rel") + 1
    while seen < count:
        seen = tl.atomic_add(counter, 0, sem="acquire")
    tl.debug_barrier()


@triton.jit(do_not_specialize=["keep", "rows", "sequences", "length", "tiles_per_sequence"])
def layer(
    x,
    w_phi,
    b_phi,
    w_x,
    b_x,
    w_s,
    w_o,
    b_o,
    keep,
    partial,
    g,
    h,
    total,
    shift,
    y,
    counter,
    rows,
    sequences,
    length,
    tiles_per_sequence,
    latent,
    width,
    depth,
    out_width,
    ACT: tl.constexpr,
    FAST: tl.constexpr,
    MEAN: tl.constexpr,
    MASKED: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    YM: tl.constexpr,
    YN: tl.constexpr,
    COLS: tl.constexpr,
    ROWS: tl.constexpr,
    TILES: tl.constexpr,
    INNER: tl.constexpr,
):
    """BN divides latent, width and out_width, BK divides depth and width; a tile of y is (YM, YN), YN divides BN."""
    own = tl.program_id(0)
    programs = tl.num_programs(0)
    tiles = sequences * tiles_per_sequence
    for place in range(own, tiles * ((latent + width) // BN), programs):
        tile = place % tiles
        column = place // tiles
        first, end, _ = place_of(tile, x, length, tiles_per_sequence, BM, False)
        at = first + tl.arange(0, BM)
        if column < latent // BN:
            col = column * BN
            z = product(w_phi, x, col + tl.arange(0, BN), at, latent, end, depth, BK, PRECISION)
            tile_sums(z, partial + tile * latent, first, end, col, b_phi, keep, latent, ACT, FAST, MASKED, BM, BN)
        else:
            cols = (column - latent // BN) * BN + tl.arange(0, BN)
            acc = product(x, w_x, at, cols, end, width, depth, BK, PRECISION)
            tl.store(g + at[:, None] * width + cols[None, :], acc.to(g.dtype.element_ty), mask=(at < end)[:, None])
    meet(counter, programs)
    for strip in range(own, tl.cdiv(width, COLS), programs):
        mix_strip(
            strip, partial, w_s, b_x, g, h, keep, total, shift, sequences, length, tiles_per_sequence, latent, width,
            ACT, FAST, MEAN, MASKED, True, COLS, ROWS, TILES, INNER,
        )  # fmt: skip
    meet(counter, 2 * programs)
    blocks = tl.cdiv(rows, YM)
    for place in range(own, blocks * (out_width // YN), programs):
        at = (place % blocks) * YM + tl.arange(0, YM)
        cols = (place // blocks) * YN + tl.arange(0, YN)
        out = product(h, w_o, at, cols, rows, out_width, width, BK, PRECISION)
        out += tl.load(b_o + cols).to(tl.float32)[None, :]
        tl.store(y + at[:, None] * out_width + cols[None, :], out.to(y.dtype.element_ty), mask=(at < rows)[:, None])
    if tl.atomic_add(counter, 1, sem="acq_rel") == 3 * programs - 1:
        tl.store(counter, 0)
