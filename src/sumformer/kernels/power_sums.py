"""`torch.ops.sumformer.power_sums`: p_β = Σ_k Π_c p_{β_c}(t_kc) for 0 < |β| ≤ m, p_j(t) = tʲ or T_j(t), d ≤ 4.

With u = 2⁻²⁴ the kernel's sum of float32 features φ̂ satisfies |p̂_β − Σ_k φ̂_β(x_k)| ≤ 16.2 u Σ_k |φ̂_β(x_k)|, less than
0.97e-6 of it. K = 15 fused multiply-adds make K roundings, each of at most u times the Σ|φ̂| so far. Taking low over
into high is exact if |high| ≥ |low| and else off by u |low|: one rounding more. What stays in low is below u |high|, so
adding to it costs u² Σ|φ̂| a token, and no thread of programs that fill the device sees 3·10⁶. The rest is float64.
The twin adds the same features in float64 by matrix products, chunk by chunk. No gradient is defined.

On a GPU the sums go through `feature_sums` in float64 unless SUMFORMER_POWER_SUMS=tiles: the kernel described here has
passed Triton's interpreter and the compiler, and has not been timed on a device yet.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import comb
from typing import Any

import torch
from torch import Tensor

from sumformer.kernels.availability import runs_on
from sumformer.kernels.power_sums_blocks import by_blocks
from sumformer.kernels.power_sums_plan import Exponents, Tile, exponents, places, tiles

SWITCH = "SUMFORMER_POWER_SUMS"
WIDEST = 2048
"""Most features that are made by the kernel; beyond, matrix products."""
_UNROLL, _CHAIN, _WARPS = 5, 3, 4
_CHUNK = 2**13  # tokens of the twin at a time; a GPU wants more
_interpreted = False  # tests of the kernels on a CPU set this, together with TRITON_INTERPRET=1


@torch.library.custom_op("sumformer::power_sums", mutates_args=())
def power_sums(x: Tensor, keep: Tensor | None, degree: int, chebyshev: bool, centre: float, inverse: float) -> Tensor:
    """x (batch, n, d), float32 or float64, keep (batch, n) bool → (batch, d') in float64, ordered as `exponents`.

    t = (x − centre)·inverse for Chebyshev polynomials, x itself for powers.
    """
    batch, n, d = x.shape
    tiled = x.dtype == torch.float32 and 0 < n < 2**31 - 2**20 and comb(degree + d, d) - 1 <= WIDEST
    if not batch or not n or not (_interpreted or runs_on(x)):
        return _twin(x, keep, degree, chebyshev, centre, inverse)
    if not tiled or not (_interpreted or os.environ.get(SWITCH) == "tiles"):
        return by_blocks(x, keep, degree, chebyshev, centre, inverse)
    from sumformer.kernels.power_sums_triton import add_programs, tile_sums

    x, keep = x.contiguous(), None if keep is None else keep.contiguous()
    plan = tiles(d, degree, chebyshev)
    turns = 1 if d == 3 else d  # side by side in a program: a power of two
    tokens = 32 * _WARPS // turns
    block = 2 * _CHAIN * _UNROLL * tokens
    programs = _programs(x, max(len(tile.features) for tile in plan), d // turns, block)
    length = batch * programs * (tokens // 32)
    rows = d * sum(len(tile.features) for tile in plan)
    partial = x.new_empty(rows, length, dtype=torch.float64)
    share = -(-(n // block) // programs)
    # one rounding instead of two where centre·inverse is a float32
    fused = chebyshev and _is_float32(centre * inverse) and _is_float32(inverse)
    scale = (centre * inverse if fused else centre, inverse)
    lengths = {"UNROLL": _UNROLL, "CHAIN": _CHAIN}
    launches, first = [], 0
    for tile in plan:
        constants = _constants(tile, d, (1 if fused else 2) if chebyshev else 0, keep is not None, turns, _interpreted)
        launches.append(
            ((x, x if keep is None else keep, partial, n, programs, share, first, length, 1, *scale), constants)
        )
        first += d * len(tile.features)
    grid = (batch * programs, d // turns)
    if not _interpreted:
        _compile_together(tile_sums, grid, launches, lengths, x.device)
    for arguments, constants in launches:
        tile_sums[grid](*arguments, **constants, **lengths)
    out = x.new_empty(batch, comb(degree + d, d) - 1, dtype=torch.float64)
    where = _where(d, degree, chebyshev, x.device)
    each = programs * (tokens // 32)
    add_programs[(out.numel(),)](partial, where, out, length, each, out.shape[1], BLOCK=256, num_warps=4)
    return out


@power_sums.register_fake
def _(x: Tensor, keep: Tensor | None, degree: int, chebyshev: bool, centre: float, inverse: float) -> Tensor:
    return x.new_empty(x.shape[0], comb(degree + x.shape[2], x.shape[2]) - 1, dtype=torch.float64)


def _resident(size: int) -> int:
    """Programs of a multiprocessor at a time: as many as its registers hold, two for each sum and some fifty."""
    return 2 if size > 56 else 3 if size > 36 else 4 if size > 24 else 6


def _programs(x: Tensor, size: int, launches: int, block: int) -> int:
    """For each sequence, one wave in all; fewer where equal shares of blocks would leave many with nothing to do."""
    if not x.is_cuda:
        return 3
    batch, n, _ = x.shape
    count = torch.cuda.get_device_properties(x.device).multi_processor_count
    blocks = max(1, n // block)
    choices = [
        max(1, r * count // (launches * batch)) for r in range(_resident(size), max(1, _resident(size) - 2) - 1, -1)
    ]
    busy = [blocks / (p * -(-blocks // p)) for p in choices]
    best = next((p for p, b in zip(choices, busy, strict=True) if b >= 0.93), choices[0])
    return min(best, -(-n // 32))


def _is_float32(value: float) -> bool:
    return float(torch.tensor(value, dtype=torch.float32)) == value


@cache
def _constants(tile: Tile, d: int, kind: int, masked: bool, turns: int, interpreted: bool) -> dict[str, Any]:
    """Of the compiled kernel: the tile as PTX, or, for the interpreter, as the list it was written from."""
    from sumformer.kernels.power_sums_ptx import carry_code, constraints, tokens_code

    size, weighted = len(tile.features), masked and kind > 0
    return {
        "SIZE": size,
        "D": d,
        "MAP": kind,
        "MASKED": masked,
        "CODE": tuple(op[i] for i in range(4) for op in tile.code) if interpreted else (),
        "TEXT": "" if interpreted else tokens_code(tile, d, _UNROLL, weighted),
        "LAST_TEXT": "" if interpreted else tokens_code(tile, d, 1, kind > 0),
        "FORWARD": "" if interpreted else carry_code(size, False),
        "BACKWARD": "" if interpreted else carry_code(size, True),
        "PLACES": constraints(size, size + _UNROLL * (d + weighted)),
        "LAST_PLACES": constraints(size, size + d + (kind > 0)),
        "CARRY_PLACES": constraints(2 * size, 2 * size),
        "TURNS": turns,
        "TOKENS": 32 * _WARPS // turns,
        "num_warps": _WARPS,
        "maxnreg": min(255, 65536 // (32 * _WARPS * _resident(size)) // 8 * 8),
    }


_compiled: set[tuple[int, torch.device]] = set()


def _compile_together(
    kernel: Any, grid: tuple[int, int], launches: list[Any], lengths: dict[str, int], device: torch.device
) -> None:
    """The tiles that are new to the device, in threads; the compiler lets go of Python's lock."""
    fresh = [(a, c) for a, c in launches if (id(c), device) not in _compiled]

    def compile_one(launch: Any) -> None:
        with torch.cuda.device(device):
            kernel.warmup(*launch[0], grid=grid, **launch[1], **lengths)

    if len(fresh) > 1:
        with ThreadPoolExecutor() as pool:
            list(pool.map(compile_one, fresh))
    _compiled.update((id(c), device) for _, c in fresh)


@cache
def _where(d: int, degree: int, chebyshev: bool, device: torch.device) -> Tensor:
    row = places(d, degree, chebyshev)
    return torch.tensor([row[beta] for beta in exponents(d, degree)[1:]], dtype=torch.int32, device=device)


def _twin(x: Tensor, keep: Tensor | None, degree: int, chebyshev: bool, centre: float, inverse: float) -> Tensor:
    """M[i, j] = Σ_k a_i(x_k) b_j(x_k): a of the first half of the coordinates, b of the others, where |i| + |j| ≤ m."""
    batch, n, d = x.shape
    split = (d + 1) // 2
    rows, columns = exponents(split, degree), exponents(d - split, degree)
    sums = x.new_zeros(batch, len(rows), len(columns), dtype=torch.float64)
    picks = [_picks(split, degree, x.device), _picks(d - split, degree, x.device)]
    chunk = (16 if x.is_cuda else 1) * _CHUNK
    for first in range(0, batch, _SEQUENCES):
        group = slice(first, first + _SEQUENCES)
        span = chunk // min(batch, _SEQUENCES)
        for start in range(0, n, span):
            y = x[group, start : start + span].movedim(-1, 0)
            weight = None if keep is None else keep[group, start : start + span]
            tables = _tables(y, weight, degree, chebyshev, centre, inverse)
            a, b = (
                _side(tables[part], pick) for part, pick in zip((slice(split), slice(split, d)), picks, strict=True)
            )
            if weight is not None:
                a = a * weight.unsqueeze(-2)
            _add_products(sums[group], a, b, rows, columns, degree)
    at = _pairs(d, split, degree, x.device)
    return sums.flatten(1).index_select(1, at)


def _tables(y: Tensor, weight: Tensor | None, degree: int, chebyshev: bool, centre: float, inverse: float) -> Tensor:
    """(d, batch, n) → (d, batch, degree + 1, n): p_0, …, p_degree by recurrence; hidden tokens are taken as 0."""
    t = (y - centre) * inverse if chebyshev else y
    t = t if weight is None else torch.where(weight, t, 0)
    out = t.new_empty(*t.shape[:-1], degree + 1, t.shape[-1])
    out[..., 0, :] = 1
    out[..., 1, :] = t
    for k in range(2, degree + 1):
        out[..., k, :] = (t + t) * out[..., k - 1, :] - out[..., k - 2, :] if chebyshev else t * out[..., k - 1, :]
    return out


def _side(tables: Tensor, picks: Tensor) -> Tensor:
    """(coordinates, batch, degree + 1, n) → (batch, columns, n) in float64: the products asked for."""
    if not len(tables):
        return tables.new_ones(tables.shape[1], 1, tables.shape[3], dtype=torch.float64)
    out = tables[0] if len(tables) == 1 else tables[0].index_select(1, picks[0])
    for table, pick in zip(tables[1:], picks[1:], strict=True):
        out = out * table.index_select(1, pick)
    return out.double()


def _add_products(
    sums: Tensor, a: Tensor, b: Tensor, rows: tuple[Exponents, ...], columns: tuple[Exponents, ...], degree: int
) -> None:
    """sums += a bᵀ in bands of rows, each with the columns whose degree is not too high for its first row."""
    for first in range(0, len(rows), _BAND):
        most = degree - sum(rows[first])
        width = sum(sum(beta) <= most for beta in columns)
        band = slice(first, first + _BAND)
        sums[:, band, :width] += a[:, band] @ b[:, :width].mT


_BAND, _SEQUENCES = 32, 64


@cache
def _picks(d: int, degree: int, device: torch.device) -> Tensor:
    return torch.tensor(exponents(d, degree), dtype=torch.long, device=device).T.contiguous()


@cache
def _pairs(d: int, split: int, degree: int, device: torch.device) -> Tensor:
    """The place in M of each β."""
    first = {beta: i for i, beta in enumerate(exponents(split, degree))}
    second = {beta: i for i, beta in enumerate(exponents(d - split, degree))}
    found = [first[beta[:split]] * len(second) + second[beta[split:]] for beta in exponents(d, degree)[1:]]
    return torch.tensor(found, dtype=torch.long, device=device)
