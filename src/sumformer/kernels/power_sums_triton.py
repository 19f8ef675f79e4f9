"""Σ_k φ_β(x_k) for the features of a tile, one token per thread and turn, all sums of a thread in registers.

A sum is a pair (high, low) of float32. K tokens are added to low by fused multiply-adds; then high takes low over,
    high' = fl(high + low), low' = fl(low − fl(high' − high)),
and low starts from what high could not take. Pairs become float64 at the end of a program, are added over its lanes,
and a second kernel adds the programs in a fixed order. No atomics: two runs agree bit for bit.
"""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, RUF005, SIM108

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def token(sums, t, weight, CODE: tl.constexpr, WEIGHTED: tl.constexpr):
    """The sums with one token more, by CODE: the kinds, then all i, j and k."""
    values = t
    out = ()
    COUNT: tl.constexpr = len(CODE) // 4
    for s in tl.static_range(COUNT):
        if CODE[s] == 4:
            a = values[CODE[COUNT + s]]
            if WEIGHTED:
                a = a * weight
            if CODE[2 * COUNT + s] < 0:
                out = out + (sums[len(out)] + a,)
            else:
                out = out + (tl.fma(a, values[CODE[2 * COUNT + s]], sums[len(out)]),)
        elif CODE[s] == 0:
            values = values + (values[CODE[COUNT + s]] * values[CODE[2 * COUNT + s]],)
        elif CODE[s] == 1:
            values = values + (values[CODE[COUNT + s]] + values[CODE[COUNT + s]],)
        elif CODE[s] == 2:
            product = values[CODE[COUNT + s]] * values[CODE[2 * COUNT + s]]
            values = values + (product - values[CODE[3 * COUNT + s]],)
        else:
            values = values + (values[CODE[COUNT + s]] * values[CODE[2 * COUNT + s]] - 1.0,)
    return out


@triton.jit
def add_tokens(sums, t, weights, COUNT: tl.constexpr, CODE: tl.constexpr, TEXT: tl.constexpr, PLACES: tl.constexpr):
    """The sums with COUNT tokens more: TEXT as PTX, or CODE where it is empty; weights, where there are any."""
    if TEXT != "":
        sums = tl.inline_asm_elementwise(
            TEXT, PLACES, sums + t + weights, (tl.float32,) * len(sums), is_pure=True, pack=1
        )
    else:
        D: tl.constexpr = len(t) // COUNT
        for s in tl.static_range(COUNT):
            one = ()
            for c in tl.static_range(D):
                one = one + (t[s * D + c],)
            sums = token(sums, one, weights[s] if len(weights) > 0 else t[0], CODE, len(weights) > 0)
    return sums


@triton.jit
def carry(high, low, TEXT: tl.constexpr, PLACES: tl.constexpr):
    """high takes over what it can of low."""
    new_high = ()
    new_low = ()
    if TEXT != "":
        both = tl.inline_asm_elementwise(TEXT, PLACES, high + low, (tl.float32,) * (2 * len(low)), is_pure=True, pack=1)
        for f in tl.static_range(len(low)):
            new_high = new_high + (both[f],)
            new_low = new_low + (both[len(low) + f],)
    else:
        for f in tl.static_range(len(low)):
            total = high[f] + low[f]
            new_low = new_low + (low[f] - (total - high[f]),)
            new_high = new_high + (total,)
    return new_high, new_low


@triton.jit
def read(pointers, inside, WHOLE: tl.constexpr):
    if WHOLE:
        out = tl.load(pointers)
    else:
        out = tl.load(pointers, mask=inside, other=0)
    return out


@triton.jit
def fetch(
    x,
    keep,
    places,
    tokens,
    one,
    inside,
    D: tl.constexpr,
    COUNT: tl.constexpr,
    MASKED: tl.constexpr,
    WHOLE: tl.constexpr,
):
    """COUNT · D coordinates, then COUNT marks if MASKED; token s of a thread lies s · TOKENS behind its first."""
    out = ()
    for s in tl.static_range(COUNT):
        for c in tl.static_range(D):
            out = out + (read(x + places[c] + s * (tokens.shape[1] * D), inside, WHOLE),)
    if MASKED:
        for s in tl.static_range(COUNT):
            out = out + (read(keep + tokens * one + s * tokens.shape[1], inside, WHOLE),)
    return out


@triton.jit
def mapped(raw, centre, inverse, D: tl.constexpr, COUNT: tl.constexpr, MASKED: tl.constexpr, MAP: tl.constexpr):
    """The coordinates, 0 where a token is hidden: x, or t = x·inverse − centre, or t = (x − centre)·inverse."""
    out = ()
    for i in tl.static_range(COUNT * D):
        t = raw[i]
        if MAP == 1:
            t = tl.fma(t, inverse, -centre)
        elif MAP == 2:
            t = (t - centre) * inverse
        if MASKED:
            t = tl.where(raw[COUNT * D + i // D] != 0, t, 0.0)
        out = out + (t,)
    return out


@triton.jit
def weights_of(raw, D: tl.constexpr, COUNT: tl.constexpr, WEIGHTED: tl.constexpr):
    """1 or 0 for each token, from its mark; nothing unless WEIGHTED."""
    out = ()
    if WEIGHTED:
        for s in tl.static_range(COUNT):
            out = out + (tl.where(raw[COUNT * D + s] != 0, 1.0, 0.0),)
    return out


@triton.jit(do_not_specialize=["x", "keep", "partial", "n", "programs", "share", "first_row", "length", "one"])
def tile_sums(
    x,
    keep,
    partial,
    n,
    programs,
    share,
    first_row,
    length,
    one,
    centre,
    inverse,
    SIZE: tl.constexpr,
    D: tl.constexpr,
    MAP: tl.constexpr,
    MASKED: tl.constexpr,
    CODE: tl.constexpr,
    TEXT: tl.constexpr,
    LAST_TEXT: tl.constexpr,
    FORWARD: tl.constexpr,
    BACKWARD: tl.constexpr,
    PLACES: tl.constexpr,
    LAST_PLACES: tl.constexpr,
    CARRY_PLACES: tl.constexpr,
    TURNS: tl.constexpr,
    TOKENS: tl.constexpr,
    UNROLL: tl.constexpr,
    CHAIN: tl.constexpr,
):
    """One column of `partial` for each warp: TURNS rotations of the coordinates side by side, TOKENS tokens each.

    `one` is 1, which the compiler must not know: it would spread the marks over other threads than their tokens'.
    """
    program = tl.program_id(0) % programs
    batch = (tl.program_id(0) // programs).to(tl.int64)
    turn = tl.program_id(1) + tl.arange(0, TURNS)[:, None]
    tokens = tl.arange(0, TOKENS)[None, :] + 0 * turn
    zero = tl.zeros((TURNS, TOKENS), dtype=tl.float32)
    places = ()
    for c in tl.static_range(D):
        places = places + (tokens * D + (c + turn) % D,)
    high = ()
    low = ()
    for _ in tl.static_range(SIZE):
        high = high + (zero,)
        low = low + (zero,)
    x += batch * n * D
    keep += batch * n
    weighted: tl.constexpr = MASKED and MAP > 0
    # whole blocks of 2 · CHAIN · UNROLL tokens per thread, the next UNROLL always under way
    blocks = n // (2 * CHAIN * UNROLL * TOKENS)
    first = tl.minimum(program * share, blocks)
    last = tl.minimum(first + share, blocks)
    at = first * (2 * CHAIN)
    end = tl.maximum(last * (2 * CHAIN) - 1, 0)
    start = tl.minimum(at, end).to(tl.int64) * (UNROLL * TOKENS)
    some = (tokens >= 0) & (first < last)
    raw = fetch(x + start * D, keep + start, places, tokens, one, some, D, UNROLL, MASKED, False)
    for _block in range(first, last):
        for _link in range(CHAIN):
            at += 1
            start = tl.minimum(at, end).to(tl.int64) * (UNROLL * TOKENS)
            ahead = fetch(x + start * D, keep + start, places, tokens, one, some, D, UNROLL, MASKED, True)
            t = mapped(raw, centre, inverse, D, UNROLL, MASKED, MAP)
            low = add_tokens(low, t, weights_of(raw, D, UNROLL, weighted), UNROLL, CODE, TEXT, PLACES)
            raw = ahead
        high, low = carry(high, low, FORWARD, CARRY_PLACES)
        for _link in range(CHAIN):
            at += 1
            start = tl.minimum(at, end).to(tl.int64) * (UNROLL * TOKENS)
            ahead = fetch(x + start * D, keep + start, places, tokens, one, some, D, UNROLL, MASKED, True)
            t = mapped(raw, centre, inverse, D, UNROLL, MASKED, MAP)
            low = add_tokens(low, t, weights_of(raw, D, UNROLL, weighted), UNROLL, CODE, TEXT, PLACES)
            raw = ahead
        high, low = carry(high, low, BACKWARD, CARRY_PLACES)
    # what is left, one token per thread at a time
    done = blocks * (2 * CHAIN * UNROLL * TOKENS)
    for step in range(program, (n - done + TOKENS - 1) // TOKENS, programs):
        start = (done + step * TOKENS).to(tl.int64)
        inside = (start + tokens) < n
        rest = fetch(x + start * D, keep + start, places, tokens, one, inside, D, 1, MASKED, False)
        t = mapped(rest, centre, inverse, D, 1, MASKED, MAP)
        weights = ()
        if MAP > 0:
            # powers of 0 are 0, but T_0, T_2, … of 0 are not
            shown = inside & (rest[D] != 0) if MASKED else inside
            weights = (tl.where(shown, 1.0, 0.0),)
        low = add_tokens(low, t, weights, 1, CODE, LAST_TEXT, LAST_PLACES)
        high, low = carry(high, low, FORWARD, CARRY_PLACES)
    WARPS: tl.constexpr = TOKENS // 32
    column = tl.program_id(0) * WARPS + tl.arange(0, WARPS)[None, :]
    for f in tl.static_range(SIZE):
        total = tl.reshape(high[f].to(tl.float64) + low[f].to(tl.float64), (TURNS, WARPS, 32))
        row = (first_row + turn * SIZE + f).to(tl.int64)
        tl.store(partial + row * length + column, tl.sum(total, axis=2))


@triton.jit(do_not_specialize=["length", "programs", "width"])
def add_programs(partial, places, out, length, programs, width, BLOCK: tl.constexpr):
    """out[b, i] = Σ of row places[i] over the programs of sequence b."""
    feature, batch = tl.program_id(0) % width, (tl.program_id(0) // width).to(tl.int64)
    row = tl.load(places + feature).to(tl.int64) * length + batch * programs
    total = tl.zeros((BLOCK,), dtype=tl.float64)
    for start in range(0, programs, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(partial + row + at, mask=at < programs, other=0.0)
    tl.store(out + batch * width + feature, tl.sum(total, axis=0))
