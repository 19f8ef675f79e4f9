"""TokenHead(X)_i = W x_i + b: one output per token."""

from __future__ import annotations

from torch import Tensor, nn

from sumformer.nn.layer import TokenWise, check_positive


class TokenHead(TokenWise):
    """ℝ^{d_model} → ℝ^{d_out} for each token."""

    def __init__(self, d_model: int, d_out: int) -> None:
        super().__init__()
        check_positive("TokenHead", d_model=d_model, d_out=d_out)
        self.d_model, self.d_out = d_model, d_out
        self.width = d_model
        self.map = nn.Linear(d_model, d_out)

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        out: Tensor = self.map(x)
        return out

    def extra_repr(self) -> str:
        return f"ℝ^{{n×{self.d_model}}} → ℝ^{{n×{self.d_out}}}"
