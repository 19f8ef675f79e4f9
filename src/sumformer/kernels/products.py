"""The four steps of the mixing layer that are more than a matrix product; X (rows, d), one row per token.

sums      Σ_s   = Σ_{k in s} σ(W x_k + b)                        φ(X) is never written, nor is W x
hidden    h_i   = σ(g_i + shift_s),  g_i = W x_i                 g comes back where asked for
pull      a_i   = (Wᵀ y_i) · σ′(g_i + shift_s),  Σ_{i in s} a_i and Σ_i y_i
spread    p_i   = σ′(W x_i + b) · scale_s,  and Σ_{i in s} p_i   the gradient of `sums`

`sums` and `hidden` are one kernel each, product and σ (`product_triton`). In the others the product is cuBLAS's and the
rest one pass over it (`pass_triton`): on an H200 one kernel for both was no faster (16,384 × 1024, bfloat16, in µs: 94
for `pull`, where the product takes 51 and the pass 45). Each step has a naive twin in torch: what runs without Triton,
and what the kernels are tested against.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import linear

from sumformer.kernels import activations
from sumformer.kernels.availability import runs_on
from sumformer.kernels.launch import launch
from sumformer.kernels.layout import Layout, accumulation_dtype

_ROWS, _COLS, _STAGES = 16, 128, 3
"""What of a tile a program of the pass holds at a time; measured on an H200, nothing is tuned at run time."""
_PROGRAMS, _LONGEST = 2048, 512
_TILE, _DEPTH = 128, 64
"""Rows and columns of a tile of the product, and how deep a step of it is."""
_GROUP = 8
_interpreted = False  # tests of the kernels on a CPU set this, together with TRITON_INTERPRET=1


def fused(x: Tensor) -> bool:
    """The kernels run; float64 is left to torch."""
    return x.dtype != torch.float64 and (_interpreted or runs_on(x))


def half(x: Tensor) -> bool:
    """What σ is rounded to: a fast σ does."""
    return x.dtype in (torch.bfloat16, torch.float16)


def in_one_kernel(x: Tensor, w: Tensor, layout: Layout) -> bool:
    """The product's tiles can be summed as they come: operands the accelerator can address, tiles mostly full."""
    if not (half(x) or _interpreted) or not (x.is_contiguous() and w.is_contiguous() and layout.rows > 0):
        return False
    aligned = x.shape[1] * x.element_size() % 16 == 0 and (x.data_ptr() | w.data_ptr()) % 16 == 0
    return aligned and _full(layout, _TILE) and fused(x)


def _full(layout: Layout, tile: int) -> bool:
    return 4 * layout.tile_count(tile) * tile <= 5 * max(layout.rows, 4 * tile)


def _whole(layout: Layout) -> bool:
    """Every tile lies in one sequence, or ends with the last."""
    return layout.sequences == 1 or (layout.cu_seqlens is None and layout.length % _TILE == 0)


def _many(layout: Layout, width: int, device: torch.device) -> bool:
    """Tiles of twice the size are mostly full and keep most multiprocessors busy."""
    count = layout.tile_count(2 * _TILE) * ((width + _TILE - 1) // _TILE)
    return 4 * count >= 3 * _multiprocessors(device) and _full(layout, 2 * _TILE)


def _programs(device: torch.device, large: bool, tiles: int) -> int:
    """As many as a device holds at a time: one that works on a large tile fills a multiprocessor."""
    return min((1 if large else 2) * _multiprocessors(device), tiles)


def sums(
    x: Tensor, w: Tensor, b: Tensor, name: str, layout: Layout, keep: Tensor | None, factor: float = 1.0
) -> Tensor:
    """(sequences, d') in float32, times `factor`."""
    if not fused(x):
        features = activations.value(name, linear(x, w, b))
        return factor * layout.sums(features if keep is None else torch.where(keep.reshape(-1, 1), features, 0))
    if not in_one_kernel(x, w, layout):
        return _pass(0, linear(x, w), name, layout, b, keep=keep, sums=True, factor=factor)
    partial, per_sequence, ends = tile_sums(x, w, b, name, layout, keep)
    return _total(partial, layout, per_sequence, ends, factor)


def tile_sums(
    x: Tensor, w: Tensor, b: Tensor, name: str, layout: Layout, keep: Tensor | None, large: bool | None = None
) -> tuple[Tensor, int, Tensor]:
    """(tiles, d') for what is `in_one_kernel`, the tiles of a sequence, and where those of a pack end.

    `large`: tiles of twice the rows, else as the layout has it.
    """
    from sumformer.kernels.product_triton import long_sums

    width, packed, fast = w.shape[0], layout.cu_seqlens is not None, half(x)
    large = _many(layout, width, x.device) if large is None else large
    tile = 2 * _TILE if large else _TILE
    count, per_sequence = layout.tile_count(tile), layout.tiles_per_sequence(tile)
    table, ends = layout.tile_table(tile) if packed else (x, x)
    partial = x.new_empty(count, width, dtype=torch.float32)
    launch(
        long_sums,
        (_programs(x.device, large, count * ((width + _TILE - 1) // _TILE)), 1),
        (b, x if keep is None else keep, partial, table),
        (layout.length, per_sequence, count),
        (width, x.shape[1]),
        (
            *(activations.NAMES.index(name), fast, keep is not None, packed, "tf32" if fast else "ieee"),
            *(tile, _TILE, _DEPTH, _GROUP),
        ),
        ((x, [tile, _DEPTH]), (w, [_TILE, _DEPTH])),
        num_stages=3,
        num_warps=8 if large else 4,
    )
    return partial, per_sequence, ends


def hidden(x: Tensor, w: Tensor, shift: Tensor, name: str, layout: Layout, save: bool) -> tuple[Tensor, Tensor | None]:
    """h and, where `save`, g; shift is (sequences, m)."""
    if not fused(x):
        g = linear(x, w)
        return activations.value(name, g + layout.to_rows(shift).to(x.dtype)), g if save else None
    if _whole(layout) and w.shape[0] * x.element_size() % 16 == 0 and in_one_kernel(x, w, layout):
        return hidden_tiles(x, w, shift, name, layout, save)
    return hidden_by_pass(x, w, shift, name, layout, save)


def hidden_by_pass(
    x: Tensor, w: Tensor, shift: Tensor, name: str, layout: Layout, save: bool
) -> tuple[Tensor, Tensor | None]:
    """The same by cuBLAS and a pass."""
    g = linear(x, w)
    out = torch.empty_like(g) if save else g
    _pass(0, g, name, layout, shift, out=out)
    return out, g if save else None


def hidden_tiles(
    x: Tensor, w: Tensor, shift: Tensor, name: str, layout: Layout, save: bool, large: bool | None = None
) -> tuple[Tensor, Tensor | None]:
    """The same in one kernel; `large`: tiles of twice the columns, else as the layout has it."""
    from sumformer.kernels.product_triton import long_hidden

    width, fast = w.shape[0], half(x)
    large = _many(layout, width, x.device) if large is None else large
    columns = 2 * _TILE if large else _TILE
    count = (layout.rows + _TILE - 1) // _TILE
    h = x.new_empty(layout.rows, width)
    g = torch.empty_like(h) if save else h
    launch(
        long_hidden,
        (_programs(x.device, large, count * ((width + columns - 1) // columns)), 1),
        (shift,),
        (count // layout.sequences, count),
        (width, x.shape[1]),
        (
            *(activations.NAMES.index(name), fast, save, "tf32" if fast else "ieee"),
            *(_TILE, columns, _DEPTH, _GROUP),
        ),
        ((x, [_TILE, _DEPTH]), (w, [columns, _DEPTH]), (h, [_TILE, columns // 2]), (g, [_TILE, columns // 2])),
        num_stages=3,
        num_warps=8 if large else 4,
    )
    return h, g if save else None


def pull(
    y: Tensor, w: Tensor, g: Tensor, shift: Tensor, name: str, layout: Layout, out: Tensor
) -> tuple[Tensor, Tensor]:
    """a goes to `out` (rows, m), a view whose rows may be longer; (sequences, m) and Σ y come back."""
    if not fused(y):
        a = (y @ w) * activations.slope(name, g + layout.to_rows(shift).to(y.dtype))
        out.copy_(a)
        return layout.sums(a), y.sum(0, dtype=accumulation_dtype(y.dtype))
    beside = y if y.shape[1] == w.shape[1] else None
    found = _pass(1, g, name, layout, shift, y=y @ w, beside=beside, out=out, sums=True)
    if beside is None:
        return found, y.sum(0, dtype=torch.float32)
    reached, summed = found[:, : w.shape[1]], found[:, w.shape[1] :]
    return reached.contiguous(), summed[0] if summed.shape[0] == 1 else summed.sum(0)


def spread(
    x: Tensor, w: Tensor, b: Tensor, scale: Tensor, name: str, layout: Layout, keep: Tensor | None, out: Tensor
) -> Tensor:
    """p goes to `out` (rows, d'); the sums (sequences, d') come back."""
    if not fused(x):
        p = activations.slope(name, linear(x, w, b)) * layout.to_rows(scale).to(x.dtype)
        p = p if keep is None else torch.where(keep.reshape(-1, 1), p, 0)
        out.copy_(p)
        return layout.sums(p)
    return _pass(2, linear(x, w), name, layout, b, scale=scale, keep=keep, out=out, sums=True)


def _pass(
    what: int,
    g: Tensor,
    name: str,
    layout: Layout,
    shift: Tensor,
    y: Tensor | None = None,
    beside: Tensor | None = None,
    scale: Tensor | None = None,
    keep: Tensor | None = None,
    out: Tensor | None = None,
    sums: bool = False,
    factor: float = 1.0,
) -> Tensor:
    """The sums (sequences, m), or (sequences, 2m) with those of `beside`; something empty where none are asked for."""
    from sumformer.kernels.pass_triton import activation_pass

    width, packed = g.shape[1], layout.cu_seqlens is not None
    tile = _tile(g)
    count, per_sequence = layout.tile_count(tile), layout.tiles_per_sequence(tile)
    table, ends = layout.tile_table(tile) if packed else (g, g)
    summed = width * (0 if not sums else 1 if beside is None else 2)
    partial = g.new_empty(count if sums else 0, summed, dtype=torch.float32)
    nothing = g
    launch(
        activation_pass,
        (count, (width + _COLS - 1) // _COLS),
        (
            *(g, nothing if y is None else y, nothing if beside is None else beside, nothing if out is None else out),
            *(shift, nothing if scale is None else scale.contiguous(), nothing if keep is None else keep, partial),
            table,
        ),
        (layout.length, per_sequence, tile),
        (width if out is None else out.stride(0), 0 if shift.dim() == 1 else shift.stride(0), summed, width),
        (
            *(what, activations.NAMES.index(name), half(g), out is not None, sums, beside is not None),
            *(keep is not None, packed, _ROWS, _COLS, _STAGES),
        ),
        num_warps=4,
    )
    return _total(partial, layout, per_sequence, ends, factor) if sums else partial


def _total(partial: Tensor, layout: Layout, per_sequence: int, ends: Tensor, factor: float) -> Tensor:
    """(tiles, m) → (sequences, m)."""
    from sumformer.kernels.pass_triton import sum_tiles

    width, packed = partial.shape[1], layout.cu_seqlens is not None
    total = partial.new_empty(layout.sequences, width)
    grid = (layout.sequences, (width + 15) // 16)
    launch(
        sum_tiles, grid, (partial, total, ends), (per_sequence, float(factor)), (width,), (packed, 128, 16), num_warps=4
    )
    return total


def _tile(g: Tensor) -> int:
    """Rows of a tile, a power of two: about _PROGRAMS programs share the work. It follows from the shape alone."""
    wanted = g.shape[0] * ((g.shape[1] + _COLS - 1) // _COLS) // _PROGRAMS
    return max(4 * _ROWS, min(_LONGEST, 1 << max(wanted, 1).bit_length() - 1))


@cache
def _multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2
