"""T_0, …, T_m of every token by recurrence, a row of tokens for each degree: T is written, and only t is read."""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n", "blocks", "degree"])
def recurrence(t, out, n, blocks, degree, BLOCK: tl.constexpr):
    """out[b, k, i] = T_k(t[b, i])."""
    place, batch = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK), (tl.program_id(0) // blocks).to(tl.int64)
    inside = place < n
    value = tl.load(t + batch * n + place, mask=inside, other=0.0)
    before, now, twice = value * 0 + 1, value, value + value
    row = out + batch * (degree + 1) * n + place
    tl.store(row, before, mask=inside)
    for _ in range(degree):
        row += n
        tl.store(row, now, mask=inside)
        after = twice * now - before
        before, now = now, after
