"""Attention along lists of keys, in O(n·d) memory beyond the result. Tokens t, heads h, list entries s:

logits(q, k)[t, h, s] = ⟨q[t, h], k[list[t, s], h]⟩
mix(w, v)[t, h]       = Σ_s w[t, h, s] v[list[t, s], h]
spread(w, q)[u, h]    = Σ_{(t, s) : list[t, s] = u} w[t, h, s] q[t, h]

Each is linear in either argument, and the gradients of the three are the three: nothing gathered is kept for the way
back, and derivatives of every order are there. One pass over the tokens for each of the few entries of a list.
Transforms of torch.func and forward mode see the formulas themselves, and keep what they gather.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sumformer.kernels.calling import transformed


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


class _Logits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, places)
        return _logits_formula(q, k, places)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        q, k, places = ctx.saved_tensors
        return _mix(gradient, k, places), _spread(gradient, q, places), None


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, w: Tensor, v: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(w, v, places)
        return _mix_formula(w, v, places)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        w, v, places = ctx.saved_tensors
        return _logits(gradient, v, places), _spread(w, gradient, places), None


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, w: Tensor, q: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(w, q, places)
        return _spread_formula(w, q, places)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        w, q, places = ctx.saved_tensors
        return _logits(q, gradient, places), _mix(w, gradient, places), None


def _logits(q: Tensor, k: Tensor, places: Tensor) -> Tensor:
    out: Tensor = (_logits_formula if transformed() else _Logits.apply)(q, k, places)
    return out


def _mix(w: Tensor, v: Tensor, places: Tensor) -> Tensor:
    out: Tensor = (_mix_formula if transformed() else _Mix.apply)(w, v, places)
    return out


def _spread(w: Tensor, q: Tensor, places: Tensor) -> Tensor:
    out: Tensor = (_spread_formula if transformed() else _Spread.apply)(w, q, places)
    return out


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
