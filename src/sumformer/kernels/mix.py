"""What `sum_mix` runs, forward and backward, over all tokens at once or over pieces of PIECE.

g_i = W_x x_i,  h_i = σ(g_i + shift_s),  shift_s = W_s Σ_s + b,  y_i = W_o h_i + b_o
a_i = (W_oᵀ dy_i) · σ′(g_i + shift_s),  reached_s = Σ_{i in s} a_i,  scale_s = W_sᵀ reached_s  (over its count: mean)
p_i = σ′(W_φ x_i + b_φ) · scale_s,  ∂x_i = W_xᵀ a_i + W_φᵀ p_i
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.functional import linear

from sumformer.kernels import short_mix
from sumformer.kernels.calling import distributed, on_its_device
from sumformer.kernels.layout import Layout, accumulation_dtype
from sumformer.kernels.products import fused, half, hidden, in_one_kernel, pull, spread, sums
from sumformer.kernels.together import compile_shapes, compile_together

PIECE = 2**16


@on_its_device
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
    cu_seqlens: Tensor | None,
    activation: str,
    mean: bool,
    save: bool,
    recompute: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """y (batch, n, d), Σ (sequences, d'), W_s Σ + b (sequences, d) and, where they are kept, g and h (rows, d)."""
    x, w_phi, b_phi, w_x = x.contiguous(), w_phi.contiguous(), b_phi.contiguous(), w_x.contiguous()
    b_x, w_s, w_o, b_o = b_x.contiguous(), w_s.contiguous(), w_o.contiguous(), b_o.contiguous()
    keep = None if keep is None else keep.contiguous()
    weights = (w_phi, b_phi, w_x, b_x, w_s, w_o, b_o)
    _fit(x.shape[2], *[w.shape for w in weights])
    layout, rows = Layout.of(x, cu_seqlens), x.flatten(0, 1)
    g = h = None
    shape = None if recompute or distributed() else short_mix.shape_for(rows, w_phi, w_x, w_o, layout)
    if shape is not None:
        out, total, shift, g, h = short_mix.forward(
            *(rows, *weights, keep, layout, activation, mean, save, shape),
            lambda: compile_shapes(rows, weights, keep is not None, activation, mean),
        )
    else:
        tiled = in_one_kernel(rows, w_phi, layout)
        if tiled:
            compile_together(rows, w_phi, b_phi, w_x, b_x, w_s, w_o, activation, save)
        total = _mean_or_sum(rows, w_phi, b_phi, activation, layout, keep, mean, tiled)
        shift = _shift(total, w_s, b_x)
        pieces = layout.pieces(PIECE if recompute else rows.shape[0])
        # no view of what is made here: those may not be changed in place
        out = x.new_empty(x.shape[0], x.shape[1], w_o.shape[0])
        flat = out.view(rows.shape[0], w_o.shape[0])
        if len(pieces) == 1:  # a slice takes as long as a launch
            h, g = hidden(rows, w_x, shift, activation, layout, save and not recompute)
            torch.addmm(b_o, h, w_o.t(), out=flat)
        else:
            for place, sequences, part in pieces:
                h, g = hidden(rows[place], w_x, shift[sequences], activation, part, save and not recompute)
                torch.addmm(b_o, h, w_o.t(), out=flat[place])
    kept = (g, h) if save and not recompute else (None, None)
    return out, total, shift, *kept


@on_its_device
def gradients(
    grad: Tensor,
    x: Tensor,
    total: Tensor,
    shift: Tensor,
    g: Tensor | None,
    h: Tensor | None,
    w_phi: Tensor,
    b_phi: Tensor,
    w_x: Tensor,
    b_x: Tensor,
    w_s: Tensor,
    w_o: Tensor,
    keep: Tensor | None,
    cu_seqlens: Tensor | None,
    activation: str,
    mean: bool,
    recompute: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The gradients of x, W_φ, b_φ, W_x, b_x, W_s, W_o, b_o."""
    x, w_phi, b_phi, w_x, b_x, w_s, w_o = (t.contiguous() for t in (x, w_phi, b_phi, w_x, b_x, w_s, w_o))
    keep = None if keep is None else keep.contiguous()
    layout, rows, dy = Layout.of(x, cu_seqlens), x.flatten(0, 1), grad.flatten(0, 1).contiguous()
    flags = None if keep is None else keep.flatten()
    if not recompute and short_mix.shape_for(rows, w_phi, w_x, w_o, layout) is not None:
        assert g is not None
        assert h is not None
        short = short_mix.backward(
            *(dy, rows, total, shift, g, h, w_phi, b_phi, w_x, b_x, w_s, w_o, flags, layout, activation, mean)
        )
        return short[0].view_as(x), *short[1:]
    d, dtype = w_x.shape[0], x.dtype
    pieces = layout.pieces(PIECE if recompute else rows.shape[0])
    one = len(pieces) == 1
    # ∂/∂g: kept whole, as Σ sees all of it. In pieces it lies where ∂/∂x will be, otherwise beside ∂/∂(W_φ x + b_φ).
    both = x.new_empty(rows.shape[0] if one else min(PIECE, rows.shape[0]), d + w_phi.shape[0])
    in_place = d == x.shape[-1]
    dx = torch.empty_like(rows)
    dz = both[:, :d] if one else dx if in_place else x.new_empty(rows.shape[0], d)
    dw_o, db_o = _Sum(dtype, one), _Sum(dtype, one)
    reached = total.new_zeros(0 if one else layout.sequences, d)
    for place, sequences, part in pieces:
        x_i, dy_i, dz_i = (t if one else t[place] for t in (rows, dy, dz))  # a slice takes as long as a launch
        shift_s = shift if one else shift[sequences]
        if recompute:
            h, g = hidden(x_i, w_x, shift_s, activation, part, True)
        assert g is not None
        assert h is not None
        found, summed = pull(dy_i, w_o, g, shift_s, activation, part, dz_i)
        reached = found if one else _add(reached, sequences, found)
        dw_o.add(dy_i.t(), h)
        db_o.more(summed)
    even = keep is None and layout.cu_seqlens is None
    if _few(layout.sequences, w_s):
        scale, db_x, dw_s = short_mix.reach(reached, total, w_s, b_x, layout.length if mean and even else 1)
    else:
        scale = linear(reached.to(dtype), w_s.t()).to(total.dtype)
        scale = scale / layout.length if mean and even else scale
        # a copy: `reached` and ∂/∂b_o may lie in one tensor, and an operator's results must not
        db_x, dw_s = _over_sequences(reached).to(dtype, copy=True), (reached.t() @ total).to(dtype)
    scale = _over_count(scale, layout, keep) if mean and not even else scale
    joined = torch.cat([w_x, w_phi])
    dw, db_phi = _Sum(dtype, one), _Sum(dtype, one)
    for place, sequences, part in pieces:
        x_i, dx_i, scale_s = (rows, dx, scale) if one else (rows[place], dx[place], scale[sequences])
        piece = both if one else both[: part.rows]
        if not one:
            piece[:, :d].copy_(dz[place])
        kept = flags if one or flags is None else flags[place]
        found = spread(x_i, w_phi, b_phi, scale_s, activation, part, kept, piece[:, d:])
        db_phi.more(_over_sequences(found))
        torch.mm(piece, joined, out=dx_i)
        dw.add(piece.t(), x_i)
    dw_x, dw_phi = torch.split(dw.value(), [d, w_phi.shape[0]])
    return (
        dx.view_as(x),
        dw_phi.clone(),
        db_phi.value(),
        dw_x.clone(),
        db_x,
        dw_s,
        dw_o.value(),
        db_o.value(),
    )


@lru_cache(maxsize=256)
def _fit(depth: int, *shapes: torch.Size) -> None:
    """The kernels take places in memory: sizes that do not fit would go unnoticed."""
    if [len(shape) for shape in shapes] == [2, 1, 2, 1, 2, 2, 1]:
        (latent, _), (out, d) = shapes[0], shapes[5]
        if shapes == ((latent, depth), (latent,), (d, depth), (d,), (d, latent), (out, d), (out,)):
            return
    found = ", ".join(str(tuple(shape)) for shape in shapes)
    raise RuntimeError(f"sum_mix: for tokens of width {depth}, W_φ, b_φ, W_x, b, W_s, W_o, b_o do not fit: {found}")


def _few(sequences: int, w_s: Tensor) -> bool:
    """So few sequences that W_s meets them in a kernel of its own."""
    return 0 < sequences <= short_mix.FEW and half(w_s) and w_s.is_contiguous() and fused(w_s)


def _shift(total: Tensor, w_s: Tensor, b_x: Tensor) -> Tensor:
    """W_s Σ + b, (sequences, d), as wide as Σ."""
    if _few(total.shape[0], w_s):
        return short_mix.shift(total, w_s, b_x)
    return torch.addmm(b_x, total.to(w_s.dtype), w_s.t()).to(total.dtype)


def _mean_or_sum(
    rows: Tensor,
    w: Tensor,
    b: Tensor,
    activation: str,
    layout: Layout,
    keep: Tensor | None,
    mean: bool,
    tiled: bool,
) -> Tensor:
    """Σ_s, (sequences, d'); where W_φ x is written at all, then for PIECE tokens at a time, and φ(x) never."""
    pieces = layout.pieces(layout.rows if tiled else PIECE)
    if len(pieces) == 1:
        equal = mean and keep is None and layout.cu_seqlens is None
        flags = None if keep is None else keep.flatten()
        total = sums(rows, w, b, activation, layout, flags, 1 / layout.length if equal else 1.0)
        return total if equal or not mean else _over_count(total, layout, keep)
    total = rows.new_zeros(layout.sequences, w.shape[0], dtype=accumulation_dtype(rows.dtype))
    for place, sequences, part in pieces:
        flags = None if keep is None else keep.flatten()[place]
        _add(total, sequences, sums(rows[place], w, b, activation, part, flags))
    return _over_count(total, layout, keep) if mean else total


def _over_count(total: Tensor, layout: Layout, keep: Tensor | None) -> Tensor:
    """A sum over its number of tokens; an empty sequence keeps its 0."""
    if keep is None and layout.cu_seqlens is None:
        return total / layout.length
    return total / layout.counts(keep, total.device).clamp(min=1).unsqueeze(-1)


def _add(total: Tensor, sequences: slice, found: Tensor) -> Tensor:
    total[sequences] += found
    return total


def _over_sequences(found: Tensor) -> Tensor:
    return found[0] if found.shape[0] == 1 else found.sum(0)


class _Sum:
    """A sum of products over pieces: one piece is one matrix product, several add up in float32."""

    def __init__(self, dtype: torch.dtype, one: bool) -> None:
        self.dtype, self.one, self.total = dtype, one, torch.zeros(())

    def add(self, left: Tensor, right: Tensor) -> None:
        if self.one:
            self.total = left @ right
        elif left.is_cuda and self.dtype in (torch.bfloat16, torch.float16):
            self.more(torch.mm(left, right, out_dtype=torch.float32))
        else:
            self.more((left @ right).to(accumulation_dtype(self.dtype)))

    def more(self, found: Tensor) -> None:
        self.total = found if self.total.dim() == 0 else self.total.add_(found)

    def value(self) -> Tensor:
        return self.total.to(self.dtype)
