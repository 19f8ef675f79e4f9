"""Zero(X) = 0: the sub-layer that a residual block does not use, as good as one with zero weights."""

from __future__ import annotations

import torch
from torch import Tensor

from sumformer.nn.layer import TokenWise


class Zero(TokenWise):
    """X ↦ 0 of the same shape."""

    def __init__(self) -> None:
        super().__init__()

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        return torch.zeros_like(x)

    def extra_repr(self) -> str:
        return "X ↦ 0"
