"""attend(q, k, v) = ρ(scale · q kᵀ) v, heads side by side: q (batch, h, n, d), k and v (batch, h, m, ·)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from sumformer.nn.normalisers import Normaliser, Softmax
from sumformer.nn.scaling import scaled


def attend(q: Tensor, k: Tensor, v: Tensor, rho: Normaliser, scale: float, keep: Tensor | None = None) -> Tensor:
    """Softmax goes to PyTorch's fused kernel, every other ρ to the definition. `keep` (batch, m) marks the real keys.

    Keys of padding must come with zero values, so that a sequence of nothing but padding gives zeros.
    """
    if type(rho) is not Softmax:
        return naive_attend(q, k, v, rho, scale, keep)
    # The kernels disagree on rows without a key: such a row keeps them all, and sums their zero values.
    mask = None if keep is None else (keep | ~keep.any(-1, keepdim=True))[:, None, None, :]
    if torch.compiler.is_exporting():
        q, scale = scaled(q, scale), 1.0
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


def causal_attend(q: Tensor, k: Tensor, v: Tensor, rho: Normaliser, scale: float) -> Tensor:
    """Query i attends to keys 1 … i."""
    k, v, broken = finite_part(k, v)
    return torch.where(broken, torch.nan, lower_attend(q, k, v, rho, scale))


def finite_part(k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """k and v with 0 for tokens that are not finite, and (batch, h, n, 1), True from the first of those on.

    A dense product multiplies later tokens by 0, which is NaN where they are not finite. Such keys and values are taken
    out, and make the outputs NaN from their own place on.
    """
    finite = (k.isfinite().all(-1) & v.isfinite().all(-1)).unsqueeze(-1)
    return torch.where(finite, k, 0.0), torch.where(finite, v, 0.0), (~finite).cumsum(-2) > 0


def lower_attend(q: Tensor, k: Tensor, v: Tensor, rho: Normaliser, scale: float) -> Tensor:
    """The n queries are the last of m ≥ n tokens, and attend to those up to themselves; k and v are finite."""
    if torch.compiler.is_exporting():
        q, scale = scaled(q, scale), 1.0
    n, m = q.shape[-2], k.shape[-2]
    if type(rho) is not Softmax:
        weights: Tensor = rho(scale * q @ k.mT, _lower_triangle(q, k))
        return weights @ v
    if n == m:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
    mask = None if n == 1 else _lower_triangle(q, k)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


def _lower_triangle(q: Tensor, k: Tensor) -> Tensor:
    """(n, m), True where key j ≤ m − n + i."""
    n, m = q.shape[-2], k.shape[-2]
    return torch.ones(n, m, dtype=torch.bool, device=q.device).tril(m - n)


def naive_attend(q: Tensor, k: Tensor, v: Tensor, rho: Normaliser, scale: float, keep: Tensor | None = None) -> Tensor:
    """The definition, with the whole attention matrix in memory."""
    weights: Tensor = rho(scaled(q, scale) @ k.mT, None if keep is None else keep[:, None, None, :])
    return weights @ v
