"""Layers (batch, n, d) → (batch, n, d): ours, softmax attention by SDPA, linear attention with elu + 1."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import elu, scaled_dot_product_attention

HEAD = 64


class Projections(nn.Module):
    """q, k, v from one product, and the product after the heads."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def heads(self, x: Tensor) -> tuple[Tensor, ...]:
        split: Tensor = torch.unflatten(self.qkv(x), -1, (3, -1, HEAD))
        return split.permute(2, 0, 3, 1, 4).unbind(0)

    def join(self, y: Tensor) -> Tensor:
        out: Tensor = self.out(y.transpose(1, 2).flatten(2))
        return out


class FlashAttention(Projections):
    """softmax(q kᵀ/√64) v."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(x)
        return self.join(scaled_dot_product_attention(q, k, v))


class LinearAttention(Projections):
    """a(q) (a(k)ᵀ v) / (a(q) Σ a(k)), a = elu + 1."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(x)
        q, k = elu(q) + 1, elu(k) + 1
        norm = q @ k.sum(2, dtype=torch.float32).to(q.dtype).unsqueeze(-1)
        return self.join((q @ (k.mT @ v)) / norm)


def compiled(module: nn.Module) -> Any:
    """One graph for every length."""
    return torch.compile(module, dynamic=True)
