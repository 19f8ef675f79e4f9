"""FeedForward(x) = W_2 σ(W_1 x + b_1) + b_2, for each token on its own."""

from __future__ import annotations

from torch import Tensor, nn

from sumformer.nn.layer import TokenWise, check_positive
from sumformer.nn.mlp import activation_module


class FeedForward(TokenWise):
    """`d_hidden` hidden units (r in Y); dropout acts on them."""

    def __init__(self, d_model: int, d_hidden: int, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__()
        check_positive("FeedForward", d_model=d_model, d_hidden=d_hidden)
        self.d_model, self.d_hidden, self.activation, self.dropout = d_model, d_hidden, activation, dropout
        self.width = d_model
        self.W_1 = nn.Linear(d_model, d_hidden)
        self.sigma = activation_module(activation)
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()
        self.W_2 = nn.Linear(d_hidden, d_model)

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        out: Tensor = self.W_2(self.drop(self.sigma(self.W_1(x))))
        return out

    def extra_repr(self) -> str:
        return f"ℝ^{self.d_model} → ℝ^{self.d_model}, {self.d_hidden} hidden"
