"""`torch.ops.sumformer.sum_mix`: the mixing layer in one operator, with its gradient.

Σ_s = Σ_{k in s} σ(W_φ x_k + b_φ)   (over its count, for the mean),   y_i = W_o σ(W_x x_i + W_s Σ_s + b) + b_o

φ(X) is never written. For the gradient g_i = W_x x_i and h_i = σ(g_i + …) are kept, or, with `recompute`, nothing but
x and Σ: then both ways run over pieces of `PIECE` tokens, and what is needed beside x, y and their gradients does not
grow with n. Every sum over tokens has a fixed order: two runs agree bit for bit.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from sumformer.kernels.layout import Layout
from sumformer.kernels.products import hidden, pull, spread, sums

PIECE = 2**16


@torch.library.custom_op("sumformer::sum_mix", mutates_args=())
def sum_mix(
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
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """y (batch, n, d), Σ (sequences, d') and, where they are kept, g and h (rows, d), else (0, d)."""
    layout, rows = Layout.of(x, cu_seqlens), x.flatten(0, 1)
    out = x.new_empty(rows.shape[0], w_o.shape[0])
    pieces = layout.pieces(PIECE if recompute else rows.shape[0])
    total = _mean_or_sum(rows, w_phi, b_phi, activation, layout, keep, mean)
    shift = _shift(total, w_s, b_x)
    g = h = x.new_empty(0, w_x.shape[0])
    for place, sequences, part in pieces:
        h, kept = hidden(rows[place], w_x, shift[sequences], activation, part, save and not recompute)
        g = g if kept is None else kept
        torch.addmm(b_o, h, w_o.t(), out=out[place])
    if not save or recompute:
        h, g = x.new_empty(0, w_x.shape[0]), x.new_empty(0, w_x.shape[0])
    return torch.unflatten(out, 0, x.shape[:2]), total, g, h


@sum_mix.register_fake
def _(
    x: Tensor,
    w_phi: Tensor,
    b_phi: Tensor,
    w_x: Tensor,
    b_x: Tensor,
    w_s: Tensor,
    w_o: Tensor,
    b_o: Tensor,
    *rest: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    _, cu_seqlens, _, _, save, recompute = rest
    sequences = x.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
    kept = x.shape[0] * x.shape[1] if save and not recompute else 0
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    total = x.new_empty(sequences, w_phi.shape[0], dtype=wide)
    out = x.new_empty(x.shape[0], x.shape[1], w_o.shape[0])
    return out, total, x.new_empty(kept, w_x.shape[0]), x.new_empty(kept, w_x.shape[0])


@torch.library.custom_op("sumformer::sum_mix_backward", mutates_args=())
def sum_mix_backward(
    grad: Tensor,
    x: Tensor,
    total: Tensor,
    g: Tensor,
    h: Tensor,
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
    layout, rows, dy = Layout.of(x, cu_seqlens), x.flatten(0, 1), grad.flatten(0, 1).contiguous()
    flags = None if keep is None else keep.flatten()
    d, dtype = w_x.shape[0], x.dtype
    pieces = layout.pieces(PIECE if recompute else rows.shape[0])
    one = len(pieces) == 1
    shift = _shift(total, w_s, b_x)
    # ∂/∂g: kept whole, as Σ sees all of it. In pieces it lies where ∂/∂x will be, otherwise beside ∂/∂(W_φ x + b_φ).
    both = x.new_empty(rows.shape[0] if one else min(PIECE, rows.shape[0]), d + w_phi.shape[0])
    in_place = d == x.shape[-1]
    dx = torch.empty_like(rows)
    dz = both[:, :d] if one else dx if in_place else x.new_empty(rows.shape[0], d)
    dw_o, db_o = _Sum(dtype, one), _Sum(dtype, one)
    reached = total.new_zeros(layout.sequences, d)
    for place, sequences, part in pieces:
        if recompute:
            h, kept_g = hidden(rows[place], w_x, shift[sequences], activation, part, True)
            assert kept_g is not None
            g = kept_g
        found = pull(dy[place], w_o, g, shift[sequences], activation, part, dz[place])
        reached = found if one else _add(reached, sequences, found)
        dw_o.add(dy[place].t(), h)
        db_o.add_rows(dy[place])
    scale = linear(reached.to(dtype), w_s.t()).to(total.dtype)
    scale = _over_count(scale, layout, keep) if mean else scale
    joined = torch.cat([w_x, w_phi])
    dw, db_phi = _Sum(dtype, one), total.new_zeros(w_phi.shape[0])
    for place, sequences, part in pieces:
        piece = both[: part.rows]
        if not one:
            piece[:, :d].copy_(dz[place])
        kept = None if flags is None else flags[place]
        found = spread(rows[place], w_phi, b_phi, scale[sequences], activation, part, kept, piece[:, d:])
        db_phi = db_phi + found.sum(0)
        torch.mm(piece, joined, out=dx[place])
        dw.add(piece.t(), rows[place])
    dw_x, dw_phi = torch.split(dw.value(), [d, w_phi.shape[0]])
    dw_s = (reached.t() @ total).to(dtype)
    return (
        dx.view_as(x),
        dw_phi.clone(),
        db_phi.to(dtype),
        dw_x.clone(),
        reached.sum(0).to(dtype),
        dw_s,
        dw_o.value(),
        db_o.value(),
    )


@sum_mix_backward.register_fake
def _(grad: Tensor, x: Tensor, total: Tensor, g: Tensor, h: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    w_phi, b_phi, w_x, b_x, w_s, w_o = rest[:6]
    shapes = [t.shape for t in (x, w_phi, b_phi, w_x, b_x, w_s, w_o)] + [(w_o.shape[0],)]
    return tuple(x.new_empty(shape) for shape in shapes)


def _keep_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, w_phi, b_phi, w_x, b_x, w_s, w_o, _, keep, cu_seqlens, ctx.activation, ctx.mean, _, ctx.recompute = inputs
    _, total, g, h = output
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, total, g, h, w_phi, b_phi, w_x, b_x, w_s, w_o, keep, cu_seqlens)


def _backward(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 14
    *tensors, keep, cu_seqlens = ctx.saved_tensors
    found = sum_mix_backward(grad, *tensors, keep, cu_seqlens, ctx.activation, ctx.mean, ctx.recompute)
    return (*found, None, None, None, None, None, None)


sum_mix.register_autograd(_backward, setup_context=_keep_for_backward)


def _shift(total: Tensor, w_s: Tensor, b_x: Tensor) -> Tensor:
    """W_s Σ + b, (sequences, d)."""
    return torch.addmm(b_x, total.to(w_s.dtype), w_s.t())


def _mean_or_sum(
    rows: Tensor,
    w: Tensor,
    b: Tensor,
    activation: str,
    layout: Layout,
    keep: Tensor | None,
    mean: bool,
) -> Tensor:
    """Σ_s, (sequences, d'); W_φ x exists for PIECE tokens at a time, φ(x) never."""
    pieces = layout.pieces(PIECE)
    if len(pieces) == 1:
        equal = mean and keep is None and layout.cu_seqlens is None
        flags = None if keep is None else keep.flatten()
        total = sums(rows, w, b, activation, layout, flags, 1 / layout.length if equal else 1.0)
        return total if equal or not mean else _over_count(total, layout, keep)
    total = rows.new_zeros(layout.sequences, w.shape[0], dtype=_wide(rows.dtype))
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


class _Sum:
    """A sum of products over pieces: one piece is one matrix product, several add up in float32."""

    def __init__(self, dtype: torch.dtype, one: bool) -> None:
        self.dtype, self.one, self.total = dtype, one, torch.zeros(())

    def add(self, left: Tensor, right: Tensor) -> None:
        if self.one:
            self.total = left @ right
        elif left.is_cuda and self.dtype in (torch.bfloat16, torch.float16):
            self._more(torch.mm(left, right, out_dtype=torch.float32))
        else:
            self._more((left @ right).to(_wide(self.dtype)))

    def add_rows(self, rows: Tensor) -> None:
        self._more(rows.sum(0, dtype=_wide(self.dtype)))

    def _more(self, found: Tensor) -> None:
        self.total = found if self.total.dim() == 0 else self.total.add_(found)

    def value(self) -> Tensor:
        return self.total.to(self.dtype)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32
