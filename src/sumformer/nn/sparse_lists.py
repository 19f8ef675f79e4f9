"""Attention along lists of keys, in O(n·d) memory beyond the result. Tokens t, heads h, list entries s:

logits(q, k)[t, h, s] = ⟨q[t, h], k[list[t, s], h]⟩
mix(w, v)[t, h]       = Σ_s w[t, h, s] v[list[t, s], h]
spread(w, q)[u, h]    = Σ_{(t, s) : list[t, s] = u} w[t, h, s] q[t, h]

Each is linear in either argument, and the gradients of the three are the three: nothing gathered is kept for the way
back, and derivatives of every order are there. One pass over the tokens for each of the few entries of a list.
Transforms of torch.func and forward mode see the formulas themselves, and keep what they gather.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sumformer.kernels.calling import transformed

Formula = Callable[[Tensor, Tensor, Tensor], Tensor]


def _logits_formula(q: Tensor, k: Tensor, places: Tensor) -> Tensor:
    return torch.stack([(q * k.index_select(0, place)).sum(-1) for place in places.unbind(-1)], -1)


def _mix_formula(w: Tensor, v: Tensor, places: Tensor) -> Tensor:
    out = torch.zeros_like(v)
    for s, place in enumerate(places.unbind(-1)):
        out = torch.addcmul(out, w[..., s, None], v.index_select(0, place))
    return out


def _spread_formula(w: Tensor, q: Tensor, places: Tensor) -> Tensor:
    out = torch.zeros_like(q, dtype=torch.promote_types(q.dtype, torch.float32))
    for s, place in enumerate(places.unbind(-1)):
        out = out.index_add(0, place, (w[..., s, None] * q).to(out.dtype))
    return out.to(q.dtype)


def _linear(formula: Formula, gradients: Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]) -> Formula:
    """`formula`(a, b, places) with its `gradients`(∂, a, b, places) in a and b."""

    class ListOperation(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor, b: Tensor, places: Tensor) -> Tensor:
            ctx.save_for_backward(a, b, places)
            return formula(a, b, places)

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
            return *gradients(gradient, *ctx.saved_tensors), None

    def run(a: Tensor, b: Tensor, places: Tensor) -> Tensor:
        out: Tensor = (formula if transformed() else ListOperation.apply)(a, b, places)
        return out

    return run


_logits: Formula = _linear(_logits_formula, lambda g, q, k, places: (_mix(g, k, places), _spread(g, q, places)))
_mix: Formula = _linear(_mix_formula, lambda g, w, v, places: (_logits(g, v, places), _spread(w, g, places)))
_spread: Formula = _linear(_spread_formula, lambda g, w, q, places: (_logits(q, g, places), _mix(w, g, places)))


def list_logits(q: Tensor, k: Tensor, places: Tensor) -> Tensor:
    """q, k (batch, h, N, d), places (1 or batch, N, r) → (batch, h, N, r)."""
    return _to_heads(_logits(_to_tokens(q), _to_tokens(k), _flat(places, q)), q)


def list_mix(w: Tensor, v: Tensor, places: Tensor) -> Tensor:
    """w (batch, h, N, r), v (batch, h, N, d), places (1 or batch, N, r) → (batch, h, N, d)."""
    return _to_heads(_mix(_to_tokens(w), _to_tokens(v), _flat(places, v)), v)


def _to_tokens(x: Tensor) -> Tensor:
    """(batch, h, N, ·) → (batch·N, h, ·): whole tokens are gathered at a time."""
    return x.transpose(1, 2).flatten(0, 1)


def _to_heads(x: Tensor, like: Tensor) -> Tensor:
    return torch.unflatten(x, 0, (like.shape[0], like.shape[2])).transpose(1, 2)


def _flat(places: Tensor, like: Tensor) -> Tensor:
    """Places within a sequence → places within the batch."""
    first = torch.arange(like.shape[0], device=places.device) * like.shape[2]
    return (places + first.view(-1, 1, 1)).flatten(0, 1)
