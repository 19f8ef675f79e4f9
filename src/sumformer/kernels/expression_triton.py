"""A constructed network in two passes over its tokens, features and values in registers.

φ  M[i, j] = Σ_k b(y_k) Π_{c<s} T_{α_ic}(v_kc) Π_{c≥s} T_{α_jc}(v_kc), one block of sums per span of tokens
ψ  V_t(x) = Σ_α Π_c T_{α_c}(u_c) Q_{α,t}, then the target's own formula as a list of scalar instructions

T_{k+1} = 2t T_k − T_{k−1}. Instruction i is (CODE[i], LEFT[i], RIGHT[i]): places of earlier values, or of a constant.
"""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, RUF005

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def by_degree(t, degrees, TOP: tl.constexpr, POWERS: tl.constexpr):
    """(tokens,), (m,) → (tokens, m): column j holds T_{degrees[j]}(t), or the power."""
    before = tl.zeros_like(t) + 1.0
    now = t
    twice = t + t
    out = tl.where(degrees[None, :] == 0, before[:, None], now[:, None])
    for k in tl.static_range(2, TOP + 1):
        after = t * now if POWERS else twice * now - before
        before = now
        now = after
        out = tl.where(degrees[None, :] == k, now[:, None], out)
    return out


@triton.jit
def columns(t, degrees, TOP: tl.constexpr, POWERS: tl.constexpr, GATHER: tl.constexpr):
    """The same; with GATHER each degree is made once, among GATHER columns, and then picked."""
    if GATHER == 0:
        out = by_degree(t, degrees, TOP, POWERS)
    else:
        every = by_degree(t, tl.arange(0, GATHER), TOP, POWERS)
        places = tl.zeros((t.shape[0], degrees.shape[0]), dtype=tl.int32) + degrees[None, :]
        out = tl.gather(every, places, axis=1)
    return out


@triton.jit
def table(t, TOP: tl.constexpr):
    """(T_0(t), …, T_TOP(t)) as a tuple."""
    out = (tl.zeros_like(t) + 1.0, t)
    twice = t + t
    for k in tl.static_range(2, TOP + 1):
        out = out + (twice * out[k - 1] - out[k - 2],)
    return out


@triton.jit
def wide(v):
    """Elementary functions are evaluated in float64 and rounded once."""
    return v.to(tl.float64)


@triton.jit
def scalar(code: tl.constexpr, a, b):
    """One instruction; the codes are those of `sumformer.nn.scalar_program`."""
    if code == 0:
        out = a + b
    elif code == 1:
        out = a - b
    elif code == 2:
        out = a * b
    elif code == 3:
        out = (wide(a) / wide(b)).to(a.dtype)
    elif code == 4:
        out = -a
    elif code == 5:
        out = tl.exp(wide(a)).to(a.dtype)
    elif code == 6:
        out = tl.log(wide(a)).to(a.dtype)
    elif code == 7:
        out = tl.sqrt(wide(tl.where(a < 0, 0.0, a))).to(a.dtype)
    elif code == 8:
        out = tl.sin(wide(a)).to(a.dtype)
    elif code == 9:
        out = tl.cos(wide(a)).to(a.dtype)
    elif code == 10:
        out = (1.0 / (1.0 + tl.exp(-wide(a)))).to(a.dtype)
    elif code == 11:
        out = tl.abs(a)
    elif code == 12:
        out = tl.where(a != a, a, tl.where(b != b, b, tl.minimum(a, b)))
    else:
        out = tl.where(a != a, a, tl.where(b != b, b, tl.maximum(a, b)))
    return out


@triton.jit
def run(values, constants, CODE: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr):
    """The values, and behind them those of the instructions."""
    for i in tl.static_range(len(CODE)):
        if CODE[i] == 14:
            values = values + (tl.zeros_like(values[0]) + tl.load(constants + LEFT[i]),)
        else:
            values = values + (scalar(CODE[i], values[LEFT[i]], values[RIGHT[i]]),)
    return values


@triton.jit
def unit(y, centre, inverse, CLAMP: tl.constexpr):
    """(y − centre)/radius, clamped to [−1, 1] where asked for; NaN stays NaN, which minimum and maximum would drop."""
    t = (y - centre) * inverse
    if CLAMP:
        t = tl.where(t == t, tl.minimum(tl.maximum(t, -1.0), 1.0), t)
    return t


@triton.jit(do_not_specialize=["n", "groups"])
def feature_sums(
    x,
    weights,
    centre,
    inverse,
    degrees,
    blocks,
    constants,
    partial,
    n,
    groups,
    column_count,
    D: tl.constexpr,
    SPLIT: tl.constexpr,
    TOPS: tl.constexpr,
    BASIS: tl.constexpr,
    CODE: tl.constexpr,
    LEFT: tl.constexpr,
    RIGHT: tl.constexpr,
    RESULT: tl.constexpr,
    WEIGHTED: tl.constexpr,
    TYPE: tl.constexpr,
    TOKENS: tl.constexpr,
    BLOCK: tl.constexpr,
    WIDTH: tl.constexpr,
    GATHER: tl.constexpr,
):
    """Block (i, j) of M: columns i of the features of the first SPLIT coordinates, columns j of those of the others.

    Features are made in TYPE; their products are added in float64.
    """
    group = (tl.program_id(0) % groups).to(tl.int64)
    batch = (tl.program_id(0) // groups).to(tl.int64)
    pair = tl.program_id(1)
    first = tl.load(blocks + 2 * pair) * WIDTH + tl.arange(0, WIDTH)
    second = tl.load(blocks + 2 * pair + 1) * WIDTH + tl.arange(0, WIDTH)
    acc = tl.zeros((WIDTH, WIDTH), dtype=tl.float64)
    for start in range(0, TOKENS, BLOCK):
        k = group * TOKENS + start + tl.arange(0, BLOCK)
        real = k < n
        values = ()
        for c in tl.static_range(D):
            raw = tl.load(x + (batch * n + k) * D + c, mask=real, other=0.0).to(TYPE)
            values = values + (tl.where(real, raw, tl.load(centre + c)),)
        weight = tl.where(real, 1.0, 0.0).to(TYPE)
        if WEIGHTED:
            weight = tl.load(weights + batch * n + k, mask=real, other=0.0)
        if RESULT >= 0:
            weight = weight * run(values, constants, CODE, LEFT, RIGHT)[RESULT]
        a = tl.zeros((BLOCK, WIDTH), TYPE) + weight[:, None]
        b = tl.full((BLOCK, WIDTH), 1.0, TYPE)
        for c in tl.static_range(D):
            t = unit(values[c], tl.load(centre + c), tl.load(inverse + c), BASIS == 0)
            if c < SPLIT:
                a = columns(t, tl.load(degrees + c * column_count + first), TOPS[c], BASIS == 1, GATHER) * a
            elif c == SPLIT:
                b = columns(t, tl.load(degrees + c * column_count + second), TOPS[c], BASIS == 1, GATHER)
            else:
                b = b * columns(t, tl.load(degrees + c * column_count + second), TOPS[c], BASIS == 1, GATHER)
        acc += tl.dot(tl.trans(a).to(tl.float64), b.to(tl.float64), out_dtype=tl.float64)
    place = ((batch * groups + group) * tl.num_programs(1) + pair) * WIDTH + tl.arange(0, WIDTH).to(tl.int64)[:, None]
    tl.store(partial + place * WIDTH + tl.arange(0, WIDTH)[None, :], acc.to(partial.dtype.element_ty))


@triton.jit(do_not_specialize=["n"])
def evaluate(
    x,
    q,
    counts,
    centre,
    inverse,
    constants,
    out,
    n,
    D: tl.constexpr,
    TOPS: tl.constexpr,
    KERNELS: tl.constexpr,
    SERIES: tl.constexpr,
    CODE: tl.constexpr,
    LEFT: tl.constexpr,
    RIGHT: tl.constexpr,
    RESULTS: tl.constexpr,
    Q_SIZE: tl.constexpr,
    TYPE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """KERNELS: for each product the coordinates and degrees of its α, in the order of Q; SERIES: how many t it has."""
    blocks = tl.cdiv(n, BLOCK)
    k = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    real = k < n
    values = ()
    tables = ()
    for c in tl.static_range(D):
        y = tl.load(x + (batch * n + k) * D + c, mask=real, other=0.0).to(TYPE)
        values = values + (y,)
        tables = tables + (table(unit(y, tl.load(centre + c), tl.load(inverse + c), True), TOPS[c]),)
    place = q + batch * Q_SIZE
    for p in tl.static_range(len(KERNELS)):
        for s in tl.static_range(item(SERIES, p)):
            start = place + s
            values = values + (contract(start, tables, item(KERNELS, p), 0, item(SERIES, p), tl.zeros_like(values[0])),)
        place += size_of(item(KERNELS, p)) * item(SERIES, p)
    values = values + (tl.zeros_like(values[0]) + tl.load(counts + batch),)
    values = run(values, constants, CODE, LEFT, RIGHT)
    for i in tl.static_range(len(RESULTS)):
        result = values[RESULTS[i]].to(out.dtype.element_ty)
        tl.store(out + (batch * n + k) * len(RESULTS) + i, result, mask=real)


@triton.constexpr_function
def item(values, i):
    """values[i], still known when the kernel is compiled."""
    return values[i]


@triton.constexpr_function
def behind(axes, at):
    """The axes after the one at `at`."""
    return axes[at + 1 :]


@triton.constexpr_function
def size_of(axes):
    """The number of α."""
    size = 1
    for _, degree in axes:
        size *= degree + 1
    return size


@triton.jit
def contract(place, tables, AXES: tl.constexpr, AT: tl.constexpr, STRIDE: tl.constexpr, zero):
    """Σ_α Π_c T_{α_c}(u_c) Q_α over the coordinates from AT on, the last innermost."""
    if len(AXES) == AT:
        out = zero + tl.load(place)
    else:
        out = zero
        step: tl.constexpr = size_of(behind(AXES, AT)) * STRIDE
        for a in tl.static_range(item(item(AXES, AT), 1) + 1):
            inner = contract(place + a * step, tables, AXES, AT + 1, STRIDE, zero)
            out = out + tables[item(item(AXES, AT), 0)][a] * inner
    return out
