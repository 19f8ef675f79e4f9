"""VectorEmbedding(x) = W x + b, for each token on its own."""

from __future__ import annotations

from torch import Tensor, nn

from sumformer.nn.inputs import check_tokens
from sumformer.nn.layer import TokenWise, check_positive


class VectorEmbedding(TokenWise):
    """ℝ^{d_in} → ℝ^{d_model}."""

    def __init__(self, d_in: int, d_model: int) -> None:
        super().__init__()
        check_positive("VectorEmbedding", d_in=d_in, d_model=d_model)
        self.d_in, self.d_model = d_in, d_model
        self.width = d_in
        self.map = nn.Linear(d_in, d_model)

    def check(self, where: str, x: Tensor) -> Tensor:
        """x must be a floating (batch, n, d_in) tensor with n ≥ 1."""
        return check_tokens(where, x, self.d_in)

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        out: Tensor = self.map(x)
        return out

    def extra_repr(self) -> str:
        return f"ℝ^{{n×{self.d_in}}} → ℝ^{{n×{self.d_model}}}"
