"""`torch.ops.sumformer.power_sums`: p_β = Σ_k Π_c p_{β_c}(t_kc) for 0 < |β| ≤ m, p_j(t) = tʲ or T_j(t), d ≤ 4.

On a GPU few features are added in registers (`power_sums_direct`), many by products in the tensor cores, whose rate for
float64 is that of float32 elsewhere (`power_sums_products`). Both take values p_j in float32, u = 2⁻²⁴: a power tʲ has
j − 1 roundings; what a T_j adds to the sums is off by at most 2 j² u for |t| ≤ 1 (`power_sums_cover`), the one rounding
of t apart. A sum is off by 15 u Σ|A B| in registers, less than 0.9e-6 of it, and in both by n 2⁻⁵³ Σ|A B|. A and B are
factors of a feature, or of those that it is put together from. All that as long as no value, and in registers no
product or sum, overflows float32, or, of powers, is so small as to be subnormal there. Elsewhere, and as their twin,
`power_sums_chunks` makes all in float64. No gradient is defined. Before a graph is captured, a call must have been made
with the same d, degree, basis and bounds, masked or not alike.
"""

from __future__ import annotations

import struct
from ctypes import c_float
from functools import cache
from math import comb
from typing import Any

import torch
from torch import Tensor

from sumformer.kernels.availability import runs_on
from sumformer.kernels.calling import on_device
from sumformer.kernels.power_sums_blocks import by_blocks
from sumformer.kernels.power_sums_chunks import by_chunks
from sumformer.kernels.power_sums_cover import Cover, cover, direct_cover
from sumformer.kernels.power_sums_direct import WARPS, direct, direct_bytes, direct_places, direct_width, parts
from sumformer.kernels.power_sums_products import products, products_bytes
from sumformer.kernels.power_sums_values import CONSTRAINTS, LANES
from sumformer.kernels.side_by_side import side_by_side

WIDEST, HIGHEST = 2048, 64
"""Most features, and the highest degree, that are made by the kernels; beyond, `feature_sums`."""
FEW = 210
"""Most features that get a register each."""
_emulated = False  # tests on a CPU set this, and put something in place of `_launch`


def summed(x: Tensor, keep: Tensor | None, degree: int, chebyshev: bool, centre: float, inverse: float) -> Tensor:
    """x (batch, n, d), float32 or float64, keep (batch, n) bool → (batch, d') in float64, ordered as `exponents`.

    t = (x − centre)·inverse for Chebyshev polynomials, x itself for powers.
    """
    batch, n, d = x.shape
    if not batch or not n or not (_emulated or runs_on(x)):
        return by_chunks(x, keep, degree, chebyshev, centre, inverse)
    fits = degree <= HIGHEST and comb(degree + d, d) - 1 <= WIDEST and n < 2**31 - 2**20
    if x.dtype != torch.float32 or not fits:
        return by_blocks(x, keep, degree, chebyshev, centre, inverse)
    x, keep = x.contiguous(), None if keep is None else keep.contiguous()
    x = x if x.data_ptr() % 16 == 0 else x.clone()
    with on_device(x):
        return _by_kernels(x, keep, plan_of(d, degree, chebyshev), chebyshev, centre, inverse)


power_sums = torch.library.custom_op("sumformer::power_sums", mutates_args=())(summed)


@power_sums.register_fake
def _(x: Tensor, keep: Tensor | None, degree: int, chebyshev: bool, centre: float, inverse: float) -> Tensor:
    return x.new_empty(x.shape[0], comb(degree + x.shape[2], x.shape[2]) - 1, dtype=torch.float64)


def plan_of(d: int, degree: int, chebyshev: bool) -> Cover:
    """`wide` for products in the tensor cores, else for registers."""
    return (direct_cover if comb(degree + d, d) - 1 <= FEW else cover)(d, degree, chebyshev)


def _by_kernels(x: Tensor, keep: Tensor | None, plan: Cover, chebyshev: bool, centre: float, inverse: float) -> Tensor:
    batch, n, _ = x.shape
    shift = -centre * inverse
    short = _single(inverse) and _single(shift)
    of, aligned = (plan, chebyshev, keep is not None), batch == 1 or n * x.shape[2] % 4 == 0
    text = products(*of) if plan.wide else direct(*of, short, aligned)
    count, warps = (1, 1) if plan.wide else (len(parts(plan)), WARPS)
    width = 128 * len(plan.products) if plan.wide else count * direct_width(plan)
    resident = _resident(plan)
    programs = _programs(x, resident, -(-n // (warps * LANES)))
    share = -(-n // LANES // programs)
    partial = x.new_empty(batch * programs, width, dtype=torch.float64)
    numbers = struct.unpack("4i", struct.pack("2d", inverse, shift))
    arguments = (x, x if keep is None else keep, partial, n, programs, share, *numbers)
    recipes = _recipes(plan, chebyshev, x.device)
    # Another length may be the other text's. The first sequence is aligned in any case.
    texts = (text,) if plan.wide else (direct(*of, short, True), direct(*of, short, False))
    side_by_side(
        (texts[0], resident),
        x.device,
        lambda: [
            *(lambda t=t: _launch(count * programs, t, arguments, resident, warps) for t in texts),
            lambda: _over_programs(partial, batch),
            lambda: _put_together(partial.new_zeros(1, 1, width), *recipes),
        ],
    )
    _launch(count * batch * programs, text, arguments, resident, warps)
    return _added(partial, batch, *recipes)


def _single(number: float) -> bool:
    """It is a float32 number."""
    return c_float(number).value == number


def _resident(plan: Cover) -> int:
    """Programs of a multiprocessor at a time: as many as its registers and its shared memory hold.

    Those of few features have as many warps in each of the four parts of a multiprocessor.
    """
    if not plan.wide:
        registers = min(255, len(parts(plan)[0]) + 78)
        by_registers = 2048 // registers // 4 * 4 // WARPS
        return min(by_registers, 227 * 1024 // (direct_bytes(plan) + 1024) // 2 * 2)
    registers = 8 * len(plan.products) + 2 * len(plan.sets) + 60
    by_registers = next((r for r in (24, 20, 16, 12) if registers <= 2048 // r), 8)
    return min(by_registers, 220 * 1024 // (products_bytes(plan) + 1024))


def _programs(x: Tensor, resident: int, chunks: int) -> int:
    """For each sequence, one wave in all."""
    if not x.is_cuda:  # under emulation
        return min(3, chunks)
    count = torch.cuda.get_device_properties(x.device).multi_processor_count
    return min(chunks, max(1, resident * count // x.shape[0]))


def _launch(programs: int, text: str, arguments: tuple[Any, ...], resident: int, warps: int) -> None:
    from sumformer.kernels.power_sums_triton import tokens_to_sums

    registers = min(255, 2048 // (resident * warps) // 8 * 8)
    tokens_to_sums[(programs,)](*arguments, TEXT=text, CONSTRAINTS=CONSTRAINTS, num_warps=warps, maxnreg=registers)


def _added(partial: Tensor, batch: int, places: Tensor, factors: Tensor) -> Tensor:
    """(programs of all sequences, entries) → (batch, d'); first over the programs where many are asked for often."""
    if partial.is_cuda:
        often = partial.shape[1] > 256 or factors.shape[1] > 1
        sums = _over_programs(partial, batch) if often else partial.view(batch, -1, partial.shape[1])
        return _put_together(sums, places, factors)
    return (partial.view(batch, -1, partial.shape[1]).sum(1)[:, places] * factors).sum(-1)


def _over_programs(partial: Tensor, batch: int) -> Tensor:
    """(programs of all sequences, entries) → (batch, parts, entries): sums of 64 programs and of what is left."""
    from sumformer.kernels.power_sums_triton import add_programs

    programs, entries = partial.shape[0] // batch, partial.shape[1]
    sums = partial.new_empty(batch, -(-programs // 64), entries)
    numbers = (programs, sums.shape[1], entries)
    add_programs[(sums.numel() // 32,)](partial, sums, *numbers, ROWS=64, COLUMNS=32, num_warps=4)
    return sums


def _put_together(sums: Tensor, places: Tensor, factors: Tensor) -> Tensor:
    """(batch, parts, entries) → (batch, d'): Σ factor · entry, over the parts."""
    from sumformer.kernels.power_sums_triton import put_together

    out = sums.new_empty(sums.shape[0], factors.shape[0])
    numbers = (*sums.shape[1:], out.shape[1])
    terms = factors.shape[1]
    shape = {"PARTS": 512, "num_warps": 8} if terms == 1 else {"PARTS": 16, "num_warps": 1}
    put_together[(out.numel(),)](sums, places, factors, out, *numbers, TERMS=terms, **shape)
    return out


@cache
def _recipes(plan: Cover, chebyshev: bool, device: torch.device) -> tuple[Tensor, Tensor]:
    """For each β the entries, and their factors, that its sum is put together from."""
    found = plan.recipes(chebyshev, plan.entries if plan.wide else direct_places(plan))
    longest = 1 << (max(map(len, found)) - 1).bit_length()
    places = torch.zeros(len(found), longest, dtype=torch.int32)
    factors = torch.zeros(len(found), longest, dtype=torch.float64)
    for i, recipe in enumerate(found):
        places[i] = next(iter(recipe))  # 0 times another's infinity would be NaN
        places[i, : len(recipe)] = torch.tensor(list(recipe))
        factors[i, : len(recipe)] = torch.tensor(list(recipe.values()), dtype=torch.float64)
    return places.to(device), factors.to(device)
