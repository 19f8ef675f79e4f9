"""ψ(x, Σ) = MLP(σ(W_x x + W_s Σ + b)): the first layer is factored, so W_s Σ is computed once per sequence.

No (n, d + d') tensor is ever formed.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sumformer.nn.inputs import check_width
from sumformer.nn.layer import check_positive
from sumformer.nn.mlp import MLP, activation_module
from sumformer.nn.pretrained import PretrainedModule


class PairMLP(PretrainedModule):
    """`depth` ≥ 1 hidden layers of `hidden` units on the pair (x, Σ)."""

    def __init__(
        self, d: int, d_latent: int, d_out: int, hidden: int = 50, depth: int = 5, activation: str = "relu"
    ) -> None:
        super().__init__()
        check_positive("PairMLP", d=d, d_latent=d_latent, d_out=d_out, hidden=hidden, depth=depth)
        self.d, self.d_latent, self.d_out = d, d_latent, d_out
        self.hidden, self.depth, self.activation = hidden, depth, activation
        self.from_token = nn.Linear(d, hidden)
        self.from_sum = nn.Linear(d_latent, hidden, bias=False)
        self.sigma = activation_module(activation)
        self.rest = MLP(hidden, d_out, hidden, depth - 1, activation)

    def forward(self, x: Tensor, total: Tensor) -> Tensor:
        """x (batch, n, d) and Σ (batch, 1 or n, d')  →  (batch, n, d_out)."""
        check_width("PairMLP", x, self.d)
        check_width("PairMLP (Σ)", total, self.d_latent)
        out: Tensor = self.rest(self.sigma(self.from_token(x) + self.from_sum(total.to(x.dtype))))
        return out

    def extra_repr(self) -> str:
        return f"ℝ^{self.d} × ℝ^{self.d_latent} → ℝ^{self.d_out}"


class Concatenated(PretrainedModule):
    """ψ(x, Σ) = module([x, Σ]) for any token-wise module; forms the (n, d + d') tensor that `PairMLP` avoids."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor, total: Tensor) -> Tensor:
        """x (batch, n, d) and Σ (batch, 1 or n, d')  →  module's output on the joined rows."""
        joined = torch.cat([x, total.to(x.dtype).expand(-1, x.shape[1], -1)], dim=-1)
        out: Tensor = self.module(joined)
        return out
