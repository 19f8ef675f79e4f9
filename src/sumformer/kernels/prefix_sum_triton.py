"""out_i = Σ_{k ≤ i} x_k along the tokens: sums of tiles, a scan over tiles, a scan inside each tile; no atomics."""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n", "tiles"])
def sum_of_tiles(x, partial, n, tiles, m, REVERSE: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    """partial[b, t] = the sum of the tokens of tile t; from the end of the sequence with REVERSE."""
    tile, batch = tl.program_id(0) % tiles, (tl.program_id(0) // tiles).to(tl.int64)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    rows = tile * ROWS + tl.arange(0, ROWS)
    inside = (rows < n)[:, None] & (cols < m)[None, :]
    if REVERSE:
        rows = n - 1 - rows
    v = tl.load(x + (batch * n + rows)[:, None] * m + cols[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.store(partial + (batch * tiles + tile) * m + cols, tl.sum(v, axis=0), mask=cols < m)


@triton.jit(do_not_specialize=["tiles"])
def scan_of_tiles(partial, before, tiles, m, ROWS: tl.constexpr, COLS: tl.constexpr):
    """before[b, t] = the sum of the tiles before t; before[b, 0] is 0 already."""
    cols, batch = tl.program_id(1) * COLS + tl.arange(0, COLS), tl.program_id(0).to(tl.int64)
    carry = tl.zeros((COLS,), dtype=tl.float32)
    for start in range(0, tiles, ROWS):
        rows = start + tl.arange(0, ROWS)
        inside = (rows < tiles)[:, None] & (cols < m)[None, :]
        place = (batch * tiles + rows)[:, None] * m + cols[None, :]
        v = tl.load(partial + place, mask=inside, other=0.0)
        tl.store(before + place + m, tl.cumsum(v, axis=0) + carry[None, :], mask=inside & (rows < tiles - 1)[:, None])
        carry += tl.sum(v, axis=0)


@triton.jit(do_not_specialize=["n", "tiles"])
def scan_in_tiles(x, before, out, n, tiles, m, REVERSE: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    tile, batch = tl.program_id(0) % tiles, (tl.program_id(0) // tiles).to(tl.int64)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    rows = tile * ROWS + tl.arange(0, ROWS)
    inside = (rows < n)[:, None] & (cols < m)[None, :]
    if REVERSE:
        rows = n - 1 - rows
    place = (batch * n + rows)[:, None] * m + cols[None, :]
    v = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    carry = tl.load(before + (batch * tiles + tile) * m + cols, mask=cols < m, other=0.0)
    tl.store(out + place, (tl.cumsum(v, axis=0) + carry[None, :]).to(out.dtype.element_ty), mask=inside)
