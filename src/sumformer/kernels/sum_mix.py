"""`torch.ops.sumformer.sum_mix`: the mixing layer in one operator, with its gradient.

Σ_s = Σ_{k in s} σ(W_φ x_k + b_φ)   (over its count, for the mean),   y_i = W_o σ(W_x x_i + W_s Σ_s + b) + b_o

φ(X) is never written. For the gradient g_i = W_x x_i and h_i = σ(g_i + …) are kept, or, with `recompute`, nothing but
x and Σ: then both ways run over pieces of `mix.PIECE` tokens, and what is needed beside x, y and their gradients does
not grow with n. Every sum over tokens has a fixed order: two runs agree bit for bit. Few tokens go through `short_mix`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sumformer.kernels.activations import NAMES
from sumformer.kernels.calling import watched
from sumformer.kernels.layout import accumulation_dtype
from sumformer.kernels.mix import forward, gradients


def mixed(x: Tensor, *rest: Any) -> Tensor:
    """y: by the operator where something watches, else by what it runs."""
    y: Tensor
    if not watched(x):
        y = _Mix.apply(x, *rest) if rest[-2] else forward(x, *rest)[0]  # type: ignore[no-untyped-call]
        return y
    y = sum_mix(x, *rest)[0]
    return y


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
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The same; g and h are (0, d) where they are not kept."""
    weights = (w_phi, b_phi, w_x, b_x, w_s, w_o, b_o)
    if activation not in NAMES:
        raise RuntimeError(f"sum_mix: expected one of {', '.join(NAMES)}, got {activation!r}")
    if x.dim() != 3 or (keep is not None and (keep.shape != x.shape[:2] or keep.device != x.device)):
        shape = None if keep is None else tuple(keep.shape)
        raise RuntimeError(f"sum_mix: expected x (batch, n, d) and keep (batch, n), got {tuple(x.shape)} and {shape}")
    for w in weights:
        if w.dtype != x.dtype or w.device != x.device:
            raise RuntimeError(f"sum_mix: x is {x.dtype} on {x.device}, a weight {w.dtype} on {w.device}")
    out, total, shift, *kept = forward(x, *weights, keep, cu_seqlens, activation, mean, save, recompute)
    g, h = (x.new_empty(0, w_x.shape[0]) if t is None else t for t in kept)
    return out, total, shift, g, h


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
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    _, cu_seqlens, _, _, save, recompute = rest
    sequences = x.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
    kept = x.shape[0] * x.shape[1] if save and not recompute else 0
    wide = accumulation_dtype(x.dtype)
    total = x.new_empty(sequences, w_phi.shape[0], dtype=wide)
    out = x.new_empty(x.shape[0], x.shape[1], w_o.shape[0])
    shift = total.new_empty(sequences, w_x.shape[0])
    return out, total, shift, x.new_empty(kept, w_x.shape[0]), x.new_empty(kept, w_x.shape[0])


sum_mix_backward = torch.library.custom_op("sumformer::sum_mix_backward", mutates_args=())(gradients)


@sum_mix_backward.register_fake
def _(grad: Tensor, x: Tensor, total: Tensor, shift: Tensor, g: Tensor, h: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    w_phi, b_phi, w_x, b_x, w_s, w_o = rest[:6]
    shapes = [t.shape for t in (x, w_phi, b_phi, w_x, b_x, w_s, w_o)] + [(w_o.shape[0],)]
    return tuple(x.new_empty(shape) for shape in shapes)


def _keep_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor | None, ...]) -> None:
    x, w_phi, b_phi, w_x, b_x, w_s, w_o, _, keep, cu_seqlens, ctx.activation, ctx.mean, save, ctx.recompute = inputs
    ctx.kept = save or ctx.recompute
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, *output[1:], w_phi, b_phi, w_x, b_x, w_s, w_o, keep, cu_seqlens)


def _backward(ctx: Any, grad: Tensor | None, *_: Any, run: Any = sum_mix_backward) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 14
    if not ctx.kept:
        raise RuntimeError("sum_mix: called with save=False, which keeps nothing for a gradient")
    found = run(grad, *ctx.saved_tensors, ctx.activation, ctx.mean, ctx.recompute)
    return (*found, None, None, None, None, None, None)


sum_mix.register_autograd(_backward, setup_context=_keep_for_backward)


class _Mix(torch.autograd.Function):
    """The same without the operators."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        output = forward(*inputs)
        _keep_for_backward(ctx, inputs, output)
        return output[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, ...]:
        # Asked for a graph of the gradient, the operator refuses; what it runs would not notice.
        plain = grad is None or not (torch.is_grad_enabled() or watched(grad))
        return _backward(ctx, grad, run=gradients if plain else sum_mix_backward)
