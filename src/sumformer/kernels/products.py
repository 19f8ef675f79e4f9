"""The four steps of the mixing layer that are more than a matrix product; X (rows, d), one row per token.

sums      Σ_s   = Σ_{k in s} σ(W x_k + b)                        φ(X) is never written
hidden    h_i   = σ(g_i + shift_s),  g_i = W x_i                 g comes back where asked for
pull      a_i   = (Wᵀ y_i) · σ′(g_i + shift_s),  and Σ_{i in s} a_i
spread    p_i   = σ′(W x_i + b) · scale_s,  and Σ_{i in s} p_i   the gradient of `sums`

The product is cuBLAS's, the rest one pass of a Triton kernel over it. (One Triton kernel for both was measured on an
H200, 65,536 × 1024 in bfloat16: 0.41 ms for `sums`, where a cuBLAS product takes 0.21: nothing hides the activation
there, and the layer came out at 1.7 times its three products.) Each step has a naive twin in torch: what runs without
Triton, and what the kernels are tested against.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear

from sumformer.kernels import activations
from sumformer.kernels.availability import runs_on
from sumformer.kernels.layout import Layout

_ROWS, _COLS = 32, 128
"""What of a tile a program holds at a time; measured on an H200, nothing is tuned at run time."""
_PROGRAMS, _LONGEST = 2048, 512
_interpreted = False  # tests of the kernels on a CPU set this, together with TRITON_INTERPRET=1


def fused(x: Tensor) -> bool:
    """The pass runs as a kernel; float64 is left to torch."""
    return x.dtype != torch.float64 and (_interpreted or runs_on(x))


def sums(
    x: Tensor, w: Tensor, b: Tensor, name: str, layout: Layout, keep: Tensor | None, factor: float = 1.0
) -> Tensor:
    """(sequences, d') in float32, times `factor`."""
    if not fused(x):
        features = activations.value(name, linear(x, w, b))
        return factor * layout.sums(features if keep is None else torch.where(keep.reshape(-1, 1), features, 0))
    return _pass(0, linear(x, w), name, layout, b, keep=keep, sums=True, factor=factor)


def hidden(x: Tensor, w: Tensor, shift: Tensor, name: str, layout: Layout, save: bool) -> tuple[Tensor, Tensor | None]:
    """h and, where `save`, g; shift is (sequences, m)."""
    if not fused(x):
        g = linear(x, w)
        return activations.value(name, g + layout.to_rows(shift).to(x.dtype)), g if save else None
    g = linear(x, w)
    out = torch.empty_like(g) if save else g
    _pass(0, g, name, layout, shift, out=out)
    return out, g if save else None


def pull(y: Tensor, w: Tensor, g: Tensor, shift: Tensor, name: str, layout: Layout, out: Tensor) -> Tensor:
    """a goes to `out` (rows, m), a view whose rows may be longer; the sums (sequences, m) come back."""
    if not fused(y):
        a = (y @ w) * activations.slope(name, g + layout.to_rows(shift).to(y.dtype))
        out.copy_(a)
        return layout.sums(a)
    return _pass(1, g, name, layout, shift, y=y @ w, out=out, sums=True)


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
    scale: Tensor | None = None,
    keep: Tensor | None = None,
    out: Tensor | None = None,
    sums: bool = False,
    factor: float = 1.0,
) -> Tensor:
    """The sums (sequences, m), or something empty where none are asked for."""
    from sumformer.kernels.pass_triton import activation_pass, sum_tiles

    width, packed = g.shape[1], layout.cu_seqlens is not None
    tile = _tile(g)
    count, per_sequence = layout.tile_count(tile), layout.tiles_per_sequence(tile)
    table, ends = layout.tile_table(tile) if packed else (g, g)
    partial = g.new_empty(count if sums else 0, width, dtype=torch.float32)
    activation_pass[(count, (width + _COLS - 1) // _COLS)](
        g,
        g if y is None else y,
        g if out is None else out,
        width if out is None else out.stride(0),
        shift,
        0 if shift.dim() == 1 else shift.stride(0),
        g if scale is None else scale.contiguous(),
        g if keep is None else keep,
        partial,
        table,
        layout.length,
        per_sequence,
        tile,
        width,
        WHAT=what,
        ACT=activations.NAMES.index(name),
        STORE=out is not None,
        SUMS=sums,
        MASKED=keep is not None,
        PACKED=packed,
        ROWS=_ROWS,
        COLS=_COLS,
        num_warps=4,
    )
    if not sums:
        return partial
    total = g.new_empty(layout.sequences, width, dtype=torch.float32)
    grid = (layout.sequences, (width + 31) // 32)
    sum_tiles[grid](partial, total, ends, per_sequence, width, factor, PACKED=packed, ROWS=64, COLS=32, num_warps=4)
    return total


def _tile(g: Tensor) -> int:
    """Rows of a tile, a power of two: about _PROGRAMS programs share the work. It follows from the shape alone."""
    wanted = g.shape[0] * ((g.shape[1] + _COLS - 1) // _COLS) // _PROGRAMS
    return max(_ROWS, min(_LONGEST, 1 << max(wanted, 1).bit_length() - 1))
