"""The mixing layer over few tokens, where launches are what costs: as few of them as one sum allows.

forward    one (`layer_triton`)
backward   W_oᵀ dy, W_φ x  |  a, its sums, ∂b_o  |  scale, p, ∂b_φ, ∂b, ∂W_s  |  ∂x = W_xᵀ a + W_φᵀ p, ∂W_x, ∂W_φ, ∂W_o

The twins are those of `products`. Nothing is tuned at run time; the shape of a tile follows from the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from sumformer.kernels import activations, products
from sumformer.kernels.counters import counter
from sumformer.kernels.launch import launch
from sumformer.kernels.layout import Layout

MOST = 4096
"""Rows. On an H200 products of their own take less of the device from about 1,500 on (45 µs at 2,048, not 53; with
backward 223 µs at 4,096, not 237), but more launches, which take the host 100 µs forward and 500 with backward."""
FEW = 8
"""Sequences, one after the other; with more, W_s Σ is a matrix product."""
Shape = tuple[int, int, int, int, int, int, int, int]
SHAPES: dict[int, Shape] = {
    256: (64, 64, 128, 64, 32, 256, 5, 4),
    512: (128, 64, 64, 64, 64, 512, 4, 8),
    2048: (128, 128, 64, 64, 128, 1024, 4, 8),
    MOST: (128, 256, 64, 128, 256, 1024, 3, 8),
}
"""For up to so many rows: rows, columns and depth of a tile, the first two for y, rows of a strip, stages, warps.

A strip has no fewer rows than there are threads: none of them reads what another writes, where h goes over g."""
_COLS, _ROWS, _TILES, _INNER = 8, 256, 4, 1024


def shape_for(x: Tensor, w_phi: Tensor, w_x: Tensor, w_o: Tensor, layout: Layout) -> Shape | None:
    """For few rows in few sequences of equal length that fill their tiles, in half precision; so do widths."""
    if layout.cu_seqlens is not None or not 0 < layout.rows <= MOST or layout.sequences > FEW:
        return None
    shape = next(found for rows, found in SHAPES.items() if layout.rows <= rows)
    tile, columns, depth = shape[:3]
    (latent, inner), (out_width, width) = w_phi.shape, w_o.shape
    if inner % depth or width % depth or (latent | width | out_width) % columns:
        return None
    full = layout.tile_count(tile) * tile <= 2 * max(layout.rows, tile)
    small = max(latent * inner, width * latent, out_width * width) < 2**31
    plain = x.is_contiguous() and w_phi.is_contiguous() and w_x.is_contiguous() and w_o.is_contiguous()
    ours = full and small and plain and (products.half(x) or products._interpreted) and products.fused(x)
    return shape if ours else None


def forward(
    x: Tensor,
    w_phi: Tensor,
    b_phi: Tensor,
    w_x: Tensor,
    b_x: Tensor,
    w_s: Tensor,
    w_o: Tensor,
    b_o: Tensor,
    keep: Tensor | None,
    layout: Layout,
    activation: str,
    mean: bool,
    save: bool,
    shape: Shape,
    first: Callable[[], None] | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """y (batch, n, d), Σ and shift in float32, g and h, which lies over g unless kept. `first` is `launch`'s."""
    (rows, depth), latent, (out_width, width) = x.shape, w_phi.shape[0], w_o.shape
    tile, columns, step, high, wide, strip, stages, warps = shape
    per_sequence, act, fast = layout.tiles_per_sequence(tile), activations.NAMES.index(activation), products.half(x)
    count = layout.sequences * per_sequence
    partial = x.new_empty(count, latent, dtype=torch.float32)
    g = x.new_empty(rows, width)
    h = torch.empty_like(g) if save else g
    total = partial.new_empty(layout.sequences, latent)
    added = partial.new_empty(layout.sequences, width)
    y = x.new_empty(layout.sequences, layout.length, out_width)
    launch(
        _layer(),
        (products._multiprocessors(x.device) if x.is_cuda else 1, 1),
        (
            *(x, w_phi, b_phi, w_x, b_x, w_s, w_o, b_o, x if keep is None else keep),
            *(partial, g, h, total, added, y, counter(x.device)),
        ),
        (rows, layout.sequences, layout.length, per_sequence),
        (latent, width, depth, out_width),
        (
            *(act, fast, mean, keep is not None, "tf32" if fast else "ieee"),
            *(tile, columns, step, high, wide, _COLS, strip, _TILES, _INNER),
        ),
        first=first,
        num_stages=stages,
        num_warps=warps,
        launch_cooperative_grid=True,
    )
    return y, total, added, g, h


@cache
def _layer() -> Any:
    """Looked for once: an import takes as long as a tensor."""
    from sumformer.kernels.layer_triton import layer

    return layer


def shift(total: Tensor, w_s: Tensor, b_x: Tensor) -> Tensor:
    """W_s Σ + b for few sequences, (sequences, d) in float32."""
    from sumformer.kernels.columns_triton import shift_columns

    (sequences, latent), width = total.shape, w_s.shape[0]
    added = total.new_empty(sequences, width)
    launch(
        shift_columns,
        ((width + _COLS - 1) // _COLS, 1),
        (total, w_s, b_x, added),
        (sequences,),
        (latent, width),
        (_COLS, _ROWS, _INNER),
        num_warps=8,
    )
    return added


def reach(reached: Tensor, total: Tensor, w_s: Tensor, b_x: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """W_sᵀ reached (sequences, d') over `length` in float32, Σ_s reached and ∂W_s, for few sequences."""
    from sumformer.kernels.columns_triton import spread_columns

    (sequences, latent), width = total.shape, w_s.shape[0]
    scale, db_x, dw_s = torch.empty_like(total), torch.empty_like(b_x), torch.empty_like(w_s)
    launch(
        spread_columns,
        ((latent + _COLS - 1) // _COLS, 1),
        (w_s, w_s, w_s, reached, total, w_s, scale, w_s, db_x, dw_s),
        (sequences, length),
        (latent, width),
        (0, False, True, False, False, _COLS, _ROWS, _INNER // 2),
        num_warps=8,
    )
    return scale, db_x, dw_s


def backward(
    dy: Tensor,
    x: Tensor,
    total: Tensor,
    shift: Tensor,
    g: Tensor,
    h: Tensor,
    w_phi: Tensor,
    b_phi: Tensor,
    w_x: Tensor,
    b_x: Tensor,
    w_s: Tensor,
    w_o: Tensor,
    keep: Tensor | None,
    layout: Layout,
    activation: str,
    mean: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The gradients of x, W_φ, b_φ, W_x, b_x, W_s, W_o, b_o."""
    from sumformer.kernels.columns_triton import pull_columns, spread_columns

    latent, width, out_width = w_phi.shape[0], w_x.shape[0], w_o.shape[0]
    act, fast = activations.NAMES.index(activation), products.half(x)
    y, z = dy @ w_o, x @ w_phi.t()
    a, p = y, z  # a program reads what it overwrites, and no other does
    reached = total.new_empty(layout.sequences, width)
    db_phi, db_x, db_o = torch.empty_like(b_phi), torch.empty_like(b_x), b_x.new_empty(out_width)
    dw_s = torch.empty_like(w_s)
    launch(
        pull_columns,
        ((max(width, out_width) + _COLS - 1) // _COLS, 2),
        (y, g, shift, dy, a, reached, db_o),
        (layout.sequences, layout.length),
        (width, out_width),
        (act, fast, _COLS, _ROWS),
        num_warps=8,
    )
    launch(
        spread_columns,
        ((latent + _COLS - 1) // _COLS, 1),
        (z, b_phi, x if keep is None else keep, reached, total, w_s, p, db_phi, db_x, dw_s),
        (layout.sequences, layout.length),
        (latent, width),
        (act, fast, mean, keep is not None, True, _COLS, _ROWS, _INNER // 2),
        num_warps=8,
    )
    dx = torch.mm(a, w_x).addmm_(p, w_phi)
    return dx, p.t() @ x, db_phi, a.t() @ x, db_x, dw_s, dy.t() @ h, db_o
