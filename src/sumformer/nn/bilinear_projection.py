"""Y §5, BProj: BilinearProjection(X) = W_P X W_O,   W_P ∈ ℝ^{n×n} learned, independent of X.

The paper's X + W_P X W_O is this sub-layer with the residual that a block puts around it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sumformer.nn.inputs import rank_among_kept
from sumformer.nn.layer import Layer, check_positive
from sumformer.nn.token_order import check_fits, compact


class BilinearProjection(Layer):
    """W_P is stored for `n_max` tokens, drawn from N(0, 1/n_max) and read by rank among the real tokens."""

    no_causal_order = "W_P mixes every token with every other, later ones too"

    def __init__(self, d_model: int, n_max: int) -> None:
        super().__init__()
        check_positive("BilinearProjection", d_model=d_model, n_max=n_max)
        self.d_model, self.n_max = d_model, n_max
        self.width = d_model
        self.W_P = nn.Parameter(torch.randn(n_max, n_max) * n_max**-0.5)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    @property
    def equivariant(self) -> bool:
        return False

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        check_fits("BilinearProjection", x, keep, self.n_max)
        out: Tensor = self.W_O(self._mix(x, keep))
        return out

    def _mix(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """W_P X with row and column r for the real token of rank r."""
        n = x.shape[1]
        if keep is None:
            return self.W_P[:n, :n] @ x
        n = torch.sym_min(n, self.n_max)  # type: ignore[no-untyped-call]
        mixed = self.W_P[:n, :n] @ compact(x, keep)[:, :n]
        return mixed.gather(1, rank_among_kept(keep).unsqueeze(-1).expand_as(x))

    def extra_repr(self) -> str:
        return f"ℝ^{{n×{self.d_model}}} → ℝ^{{n×{self.d_model}}}, n ≤ {self.n_max}"
