"""`torch.ops.sumformer.power_sums`: p_β = Σ_k Π_c p_{β_c}(t_kc) for 0 < |β| ≤ m, p_j(t) = tʲ or T_j(t), d ≤ 4.

With u = 2⁻²⁴ the kernel's sum of float32 features φ̂ satisfies |p̂_β − Σ_k φ̂_β(x_k)| ≤ 16.2 u Σ_k |φ̂_β(x_k)|, less than
0.97e-6 of it. A chain of 14 fused multiply-adds makes 14 roundings, each of at most u times the Σ|φ̂| so far, adding two
chains one more. Taking their sum s over into high is exact if |high| ≥ |s| and else off by u |s|: one rounding more.
What is left of s is below u |high|, so adding to it costs u² Σ|φ̂| a token, and no thread of programs that fill the
device sees 3·10⁶. The rest is float64. For Chebyshev polynomials 2 k² u a token are stated beside that, for |t| ≤ 1.
What the values of a feature leave of it is used up by longer chains (`power_sums_plan`) and, of one coordinate, by
2 Σ T_a T_b − Σ T_(a−b) for Σ T_(a+b) (`power_sums_rules`): all errors together stay within what is stated.
The twin adds the same features in float64 by matrix products, chunk by chunk. No gradient is defined.

On a GPU the sums go through `feature_sums` in float64 unless SUMFORMER_POWER_SUMS=tiles: the kernel described here has
been run instruction by instruction in tests and compiled, and has not been timed on a device yet.
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
from sumformer.kernels.power_sums_cover import Exponents
from sumformer.kernels.power_sums_plan import FEATURE, Tile, exponents, recipes, tiles, turns
from sumformer.kernels.power_sums_ptx import PERIOD, PLACES, THREADS, program

SWITCH = "SUMFORMER_POWER_SUMS"
WIDEST, HIGHEST = 2048, 64
"""Most features, and the highest degree, that are made by the kernel; beyond, matrix products."""
_CHUNK = 2**13  # tokens of the twin at a time; a GPU wants more
_emulated = False  # tests on a CPU set this, and put something in place of `_launch`


@torch.library.custom_op("sumformer::power_sums", mutates_args=())
def power_sums(x: Tensor, keep: Tensor | None, degree: int, chebyshev: bool, centre: float, inverse: float) -> Tensor:
    """x (batch, n, d), float32 or float64, keep (batch, n) bool → (batch, d') in float64, ordered as `exponents`.

    t = (x − centre)·inverse for Chebyshev polynomials, x itself for powers.
    """
    batch, n, d = x.shape
    if not batch or not n or not (_emulated or runs_on(x)):
        return _twin(x, keep, degree, chebyshev, centre, inverse)
    fits = degree <= HIGHEST and comb(degree + d, d) - 1 <= WIDEST and n < 2**31 - 2**20
    if x.dtype != torch.float32 or not fits or not (_emulated or os.environ.get(SWITCH) == "tiles"):
        return by_blocks(x, keep, degree, chebyshev, centre, inverse)
    x, keep = x.contiguous(), None if keep is None else keep.contiguous()
    x = x if x.data_ptr() % 16 == 0 else x.clone()
    plan, around = tiles(d, degree, chebyshev), turns(d, degree, chebyshev)
    beside = 1 if around == 3 else around  # turns within a program: a power of two
    block = PERIOD * THREADS // beside
    programs = _programs(x, min(_resident(tile, d) for tile in plan), around // beside, block)
    share = -(-(n // block) // programs)
    length = 2 * batch * programs
    partial = x.new_empty(around * sum(len(tile.features) for tile in plan), length, dtype=torch.float64)
    # D_1 = 2 t; one rounding instead of two where centre·inverse is a float32
    fused = _is_float32(centre * inverse) and _is_float32(inverse)
    kind = (1 if fused else 2) if chebyshev else 0
    scale = (2 * centre * inverse if fused else centre, 2 * inverse)
    launches, first = [], 0
    for tile in plan:
        numbers = (n, programs, share, first, length, *scale)
        text = program(tile, d, around, kind, keep is not None)
        launches.append((text, (x, x if keep is None else keep, partial, *numbers), _resident(tile, d)))
        first += around * len(tile.features)
    _launch((batch * programs, around // beside), launches)
    return _added(partial, *_recipes(d, degree, chebyshev, x.device), batch)


@power_sums.register_fake
def _(x: Tensor, keep: Tensor | None, degree: int, chebyshev: bool, centre: float, inverse: float) -> Tensor:
    return x.new_empty(x.shape[0], comb(degree + x.shape[2], x.shape[2]) - 1, dtype=torch.float64)


def _resident(tile: Tile, d: int) -> int:
    """Programs of a multiprocessor at a time: as many as its registers hold."""
    needed = sum(1 if rest else 2 for rest in tile.rest) + sum(op[0] != FEATURE for op in tile.code) + 4 * d + 26
    return 4 if needed > 168 else 6 if needed > 128 else 8 if needed > 96 else 10


def _programs(x: Tensor, resident: int, launches: int, block: int) -> int:
    """For each sequence, one wave in all; fewer where equal shares of blocks would leave many with nothing to do."""
    if not x.is_cuda:
        return 3
    batch, n, _ = x.shape
    count = torch.cuda.get_device_properties(x.device).multi_processor_count
    blocks = max(1, n // block)
    choices = [max(1, r * count // (launches * batch)) for r in range(resident, resident // 2, -1)]
    busy = [blocks / (p * -(-blocks // p)) for p in choices]
    best = next((p for p, b in zip(choices, busy, strict=True) if b >= 0.93), choices[0])
    return min(best, -(-n // 32))


def _is_float32(value: float) -> bool:
    return float(torch.tensor(value, dtype=torch.float32)) == value


def _launch(grid: tuple[int, int], launches: list[tuple[str, tuple[Any, ...], int]]) -> None:
    """All tiles; those new to the device are compiled first, in threads, as the compiler lets go of Python's lock."""
    from sumformer.kernels.power_sums_triton import LIGHTLY, tile_sums

    device = launches[0][1][0].device
    options = [
        {"TEXT": text, "PLACES": PLACES, "num_warps": THREADS // 32, "maxnreg": _registers(resident), **LIGHTLY}
        for text, _, resident in launches
    ]

    def compile_one(i: int) -> None:
        with torch.cuda.device(device):
            tile_sums.warmup(*launches[i][1], grid=grid, **options[i])

    fresh = [i for i, (text, _, _) in enumerate(launches) if (text, device) not in _compiled]
    if len(fresh) > 1:
        with ThreadPoolExecutor() as pool:
            list(pool.map(compile_one, fresh))
    _compiled.update((text, device) for text, _, _ in launches)
    for (_, arguments, _), option in zip(launches, options, strict=True):
        tile_sums[grid](*arguments, **option)


_compiled: set[tuple[str, torch.device]] = set()


def _registers(resident: int) -> int:
    return min(255, 65536 // (THREADS * resident) // 8 * 8)


def _added(partial: Tensor, rows: Tensor, scales: Tensor, batch: int) -> Tensor:
    """(rows, columns of all sequences) → (batch, d'): scale · (the row − minus) of each β, over the columns."""
    length, width = partial.shape[1], rows.shape[1]
    if not partial.is_cuda:
        sums = partial.view(-1, batch, length // batch).sum(-1)
        less = torch.where(rows[1, :, None] < 0, 0.0, sums[rows[1].clamp(min=0)])
        return ((sums[rows[0]] - less) * scales[:, None]).T.contiguous()
    from sumformer.kernels.power_sums_triton import add_programs

    out = partial.new_empty(batch, width)
    add_programs[(out.numel(),)](partial, rows, scales, out, length, length // batch, width, BLOCK=256, num_warps=4)
    return out


@cache
def _recipes(d: int, degree: int, chebyshev: bool, device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows and minus (2, d'), scales (d')."""
    found = torch.tensor(recipes(d, degree, chebyshev), dtype=torch.float64)
    return found[:, :2].T.contiguous().to(device, torch.int32), found[:, 2].contiguous().to(device)


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
