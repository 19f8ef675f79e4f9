"""ThreePieces(x) = w₂ φ(w₁ᵀx),   φ(t) = a₁t+b₁ | a₂t+b₂ | a₃t+b₃  on  t < c₁ | c₁ ≤ t < c₂ | c₂ ≤ t   (Y, r = 1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sumformer.nn.layer import TokenWise, check_positive


class ThreePieces(TokenWise):
    """One hidden unit with a piecewise linear φ of at most three pieces, not necessarily continuous."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        check_positive("ThreePieces", d_model=d_model)
        self.d_model = d_model
        self.width = d_model
        self.w_1 = nn.Parameter(torch.randn(d_model) / d_model**0.5)
        self.w_2 = nn.Parameter(torch.randn(d_model))
        self.c = nn.Parameter(torch.tensor([-1.0, 1.0]))
        self.a = nn.Parameter(torch.tensor([0.0, 1.0, 0.0]))
        self.b = nn.Parameter(torch.tensor([-1.0, 0.0, 1.0]))

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        return three_pieces(x @ self.w_1, self.c, self.a, self.b).unsqueeze(-1) * self.w_2

    def extra_repr(self) -> str:
        return f"ℝ^{self.d_model} → ℝ^{self.d_model}, one unit of three pieces"


def three_pieces(t: Tensor, c: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """φ(t); c (…, 2), a and b (…, 3) broadcast against t (…)."""
    first, second = t < c[..., 0], t < c[..., 1]
    left, middle, right = (a[..., i] * t + b[..., i] for i in range(3))
    return torch.where(first, left, torch.where(second, middle, right))
