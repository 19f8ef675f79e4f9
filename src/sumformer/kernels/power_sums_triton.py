"""The kernels of power sums: one that is all PTX, the sum over its programs, and what that is put together to.

All sums are in a fixed order.
"""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(
    do_not_specialize=[
        "x",
        "keep",
        "partial",
        "n",
        "programs",
        "share",
        "inverse_low",
        "inverse_high",
        "shift_low",
        "shift_high",
    ]
)
def tokens_to_sums(
    x,
    keep,
    partial,
    n,
    programs,
    share,
    inverse_low,
    inverse_high,
    shift_low,
    shift_high,
    TEXT: tl.constexpr,
    CONSTRAINTS: tl.constexpr,
):
    """A row of `partial` for each program: see `power_sums_products` and `power_sums_direct`."""
    addresses = (x.to(tl.int64), keep.to(tl.int64), partial.to(tl.int64))
    numbers = (n, programs, share, inverse_low, inverse_high, shift_low, shift_high)
    tl.inline_asm_elementwise(TEXT, CONSTRAINTS, addresses + numbers, dtype=tl.int32, is_pure=False, pack=1)


@triton.jit(do_not_specialize=["programs", "parts", "entries"])
def add_programs(partial, sums, programs, parts, entries, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """sums[b, p, i] = Σ over the p-th ROWS programs of sequence b of partial[program, i]."""
    blocks = entries // COLUMNS
    both = tl.program_id(0) // blocks
    part, batch = both % parts, (both // parts).to(tl.int64)
    i = tl.program_id(0) % blocks * COLUMNS + tl.arange(0, COLUMNS)
    row = part * ROWS + tl.arange(0, ROWS)
    at = (batch * programs + row)[:, None] * entries + i[None, :]
    total = tl.sum(tl.load(partial + at, mask=(row < programs)[:, None], other=0.0), axis=0)
    tl.store(sums + both.to(tl.int64) * entries + i, total)


@triton.jit(do_not_specialize=["parts", "entries", "width"])
def put_together(sums, places, factors, out, parts, entries, width, PARTS: tl.constexpr, TERMS: tl.constexpr):
    """out[b, i] = Σ_j factors[i, j] · Σ_p sums[b, p, places[i, j]]."""
    i, batch, j = tl.program_id(0) % width, (tl.program_id(0) // width).to(tl.int64), tl.arange(0, TERMS)
    place = tl.load(places + i * TERMS + j)
    first = sums + batch * parts * entries
    total = tl.zeros((PARTS, TERMS), dtype=tl.float64)
    for start in range(0, parts, PARTS):
        part = start + tl.arange(0, PARTS)
        at = part[:, None] * entries + place[None, :]
        total += tl.load(first + at, mask=(part < parts)[:, None], other=0.0)
    terms = tl.load(factors + i * TERMS + j) * tl.sum(total, axis=0)
    tl.store(out + batch * width + i, tl.sum(terms, axis=0))
