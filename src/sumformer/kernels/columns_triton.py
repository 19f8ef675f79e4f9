"""The mixing layer's steps between its products, for few tokens: a program has COLS columns and all of their rows.

shift_columns    shift = W_s Σ + b;   within `layer_triton` also Σ, the sum of the tiles' rows, and h = σ(g + shift)
pull_columns     a = y · σ′(g + shift),  reached = Σ_i a_i;   and, beside it, Σ_i dy_i
spread_columns   scale = W_sᵀ reached,  p = σ′(z + b_φ) · scale,  ∂b_φ = Σ_i p_i,  ∂W_s = Σ_s reached_s Σ_sᵀ

One launch each, no sums that cross programs, every order fixed. The rows are those of `sequences` equal lengths.
"""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import triton
import triton.language as tl

from sumformer.kernels.activations_triton import slope, value

LENGTHS = ["sequences", "length", "tiles_per_sequence", "keep"]


@triton.jit
def share(keep, sequence, length, MEAN: tl.constexpr, MASKED: tl.constexpr, ROWS: tl.constexpr):
    """1, or for the mean 1/count of the sequence."""
    count = 1.0
    if MEAN:
        count = length.to(tl.float32)
        if MASKED:
            seen = tl.zeros((ROWS,), dtype=tl.float32)
            for start in range(0, length, ROWS):
                rows = start + tl.arange(0, ROWS)
                seen += (tl.load(keep + sequence * length + rows, mask=rows < length, other=0) != 0).to(tl.float32)
            count = tl.maximum(tl.sum(seen, axis=0), 1.0)
    return 1.0 / count


@triton.jit
def strip_of(g, sequence, start, length, cols, width, ROWS: tl.constexpr):
    """ROWS rows of g, in a few columns; 0 behind the sequence's end."""
    rows = start + tl.arange(0, ROWS)
    inside = (rows < length)[:, None] & (cols < width)[None, :]
    return tl.load(g + (sequence * length + rows)[:, None] * width + cols[None, :], mask=inside, other=0.0)


@triton.jit
def mix_strip(
    strip, partial, w_s, b_x, g, h, keep, total, shift, sequences, length, tiles_per_sequence, latent, width,
    ACT: tl.constexpr, FAST: tl.constexpr, MEAN: tl.constexpr, MASKED: tl.constexpr, HIDDEN: tl.constexpr,
    COLS: tl.constexpr, ROWS: tl.constexpr, TILES: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    """COLS columns of the shift and, where HIDDEN, of h, whose g is asked for ahead; Σ by the first strip."""
    cols = strip * COLS + tl.arange(0, COLS)
    narrow = cols < width
    bias = tl.load(b_x + cols, mask=narrow, other=0.0).to(tl.float32)
    for sequence in range(sequences):
        if HIDDEN:
            ahead = strip_of(g, sequence, 0, length, cols, width, ROWS)
        factor = share(keep, sequence, length, MEAN, MASKED, ROWS)
        added = bias
        for start in range(0, latent, INNER):
            inner = start + tl.arange(0, INNER)
            w = tl.load(
                w_s + cols[:, None] * latent + inner[None, :],
                mask=narrow[:, None] & (inner < latent)[None, :],
                other=0.0,
            )
            acc = tl.zeros((TILES, INNER), dtype=tl.float32)
            for start_tile in range(0, tiles_per_sequence, TILES):
                tiles = start_tile + tl.arange(0, TILES)
                there = (tiles < tiles_per_sequence)[:, None] & (inner < latent)[None, :]
                rows = sequence * tiles_per_sequence + tiles
                acc += tl.load(partial + rows[:, None] * latent + inner[None, :], mask=there, other=0.0)
            sums = tl.sum(acc, axis=0) * factor
            if HIDDEN and strip == 0:
                tl.store(total + sequence * latent + inner, sums, mask=inner < latent)
            added += tl.sum(w.to(tl.float32) * sums[None, :], axis=1)
        tl.store(shift + sequence * width + cols, added, mask=narrow)
        if HIDDEN:
            for start in range(0, length, ROWS):
                z = ahead.to(tl.float32) + added[None, :]
                ahead = strip_of(g, sequence, start + ROWS, length, cols, width, ROWS)
                rows = start + tl.arange(0, ROWS)
                place = (sequence * length + rows)[:, None] * width + cols[None, :]
                inside = (rows < length)[:, None] & narrow[None, :]
                tl.store(h + place, value(z, ACT, FAST).to(h.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["sequences"])
def shift_columns(
    total, w_s, b_x, shift, sequences, latent, width, COLS: tl.constexpr, ROWS: tl.constexpr, INNER: tl.constexpr
):
    """W_s Σ + b."""
    mix_strip(
        tl.program_id(0), total, w_s, b_x, total, total, total, total, shift, sequences, 1, 1, latent, width,
        0, False, False, False, False, COLS, ROWS, 1, INNER,
    )  # fmt: skip


@triton.jit(do_not_specialize=LENGTHS)
def pull_columns(
    y,
    g,
    shift,
    dy,
    a,
    reached,
    db_o,
    sequences,
    length,
    width,
    out_width,
    ACT: tl.constexpr,
    FAST: tl.constexpr,
    COLS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The programs (·, 0) pull, the programs (·, 1) sum dy."""
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    if tl.program_id(1) == 0:
        narrow = cols < width
        for sequence in range(sequences):
            added = tl.load(shift + sequence * width + cols, mask=narrow, other=0.0)[None, :]
            acc = tl.zeros((ROWS, COLS), dtype=tl.float32)
            for start in range(0, length, ROWS):
                rows = start + tl.arange(0, ROWS)
                inside = (rows < length)[:, None] & narrow[None, :]
                place = (sequence * length + rows)[:, None] * width + cols[None, :]
                z = tl.load(g + place, mask=inside, other=0.0).to(tl.float32) + added
                v = tl.load(y + place, mask=inside, other=0.0).to(tl.float32) * slope(z, ACT, FAST)
                acc += v
                tl.store(a + place, v.to(a.dtype.element_ty), mask=inside)
            tl.store(reached + sequence * width + cols, tl.sum(acc, axis=0), mask=narrow)
    else:
        narrow = cols < out_width
        acc = tl.zeros((ROWS, COLS), dtype=tl.float32)
        for start in range(0, sequences * length, ROWS):
            rows = start + tl.arange(0, ROWS)
            inside = (rows < sequences * length)[:, None] & narrow[None, :]
            acc += tl.load(dy + rows[:, None] * out_width + cols[None, :], mask=inside, other=0.0).to(tl.float32)
        tl.store(db_o + cols, tl.sum(acc, axis=0).to(db_o.dtype.element_ty), mask=narrow)


@triton.jit(do_not_specialize=LENGTHS)
def spread_columns(
    z,
    b_phi,
    keep,
    reached,
    total,
    w_s,
    p,
    db_phi,
    db_x,
    dw_s,
    sequences,
    length,
    latent,
    width,
    ACT: tl.constexpr,
    FAST: tl.constexpr,
    MEAN: tl.constexpr,
    MASKED: tl.constexpr,
    SPREAD: tl.constexpr,
    COLS: tl.constexpr,
    ROWS: tl.constexpr,
    INNER: tl.constexpr,
):
    """Without SPREAD p (sequences, latent) is the scale itself, and there is no ∂b_φ."""
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    narrow = cols < latent
    if SPREAD:
        bias = tl.load(b_phi + cols, mask=narrow, other=0.0).to(tl.float32)[None, :]
    acc = tl.zeros((ROWS, COLS), dtype=tl.float32)
    for sequence in range(sequences):
        scale = tl.zeros((COLS,), dtype=tl.float32)
        for start in range(0, width, INNER):
            inner = start + tl.arange(0, INNER)
            there = (inner < width)[:, None] & narrow[None, :]
            w = tl.load(w_s + inner[:, None] * latent + cols[None, :], mask=there, other=0.0).to(tl.float32)
            r = tl.load(reached + sequence * width + inner, mask=inner < width, other=0.0)
            scale += tl.sum(w * r[:, None], axis=0)
        scale = scale * share(keep, sequence, length, MEAN, MASKED, ROWS)
        if SPREAD:
            for start in range(0, length, ROWS):
                rows = start + tl.arange(0, ROWS)
                real = rows < length
                inside = real[:, None] & narrow[None, :]
                place = (sequence * length + rows)[:, None] * latent + cols[None, :]
                v = slope(tl.load(z + place, mask=inside, other=0.0).to(tl.float32) + bias, ACT, FAST) * scale[None, :]
                if MASKED:
                    real = tl.load(keep + sequence * length + rows, mask=real, other=0) != 0
                v = tl.where(real[:, None], v, 0.0)
                acc += v
                tl.store(p + place, v.to(p.dtype.element_ty), mask=inside)
        else:
            tl.store(p + sequence * latent + cols, scale, mask=narrow)
    if SPREAD:
        tl.store(db_phi + cols, tl.sum(acc, axis=0).to(db_phi.dtype.element_ty), mask=narrow)
    for start in range(0, width, INNER):
        inner = start + tl.arange(0, INNER)
        outer = tl.zeros((INNER, COLS), dtype=tl.float32)
        met = tl.zeros((INNER,), dtype=tl.float32)
        for sequence in range(sequences):
            r = tl.load(reached + sequence * width + inner, mask=inner < width, other=0.0)
            outer += r[:, None] * tl.load(total + sequence * latent + cols, mask=narrow, other=0.0)[None, :]
            met += r
        there = (inner < width)[:, None] & narrow[None, :]
        tl.store(dw_s + inner[:, None] * latent + cols[None, :], outer.to(dw_s.dtype.element_ty), mask=there)
        if tl.program_id(0) == 0:
            tl.store(db_x + inner, met.to(db_x.dtype.element_ty), mask=inner < width)
