"""z = αxW + βb and its gradients  ∂W = α xᵀδ,  ∂b = β Σδ,  ∂x = α δWᵀ,  for c members, in memory made once."""

from __future__ import annotations

import torch
from torch import Tensor

from sumformer.learn.ensemble.flat_parameters import Layer

NARROW = 12  # columns: the products with fewer are several times faster transposed


class Affine:
    """One layer of c members on `rows` rows; gradients are written where `gradient` points.

    `turn`: z may be the transpose of a contiguous tensor.
    """

    def __init__(
        self, layer: Layer, gradient: Layer, rows: int, alpha: float = 1.0, beta: float = 1.0, turn: bool = False
    ) -> None:
        self.weight, self.bias, self.gradient, self.alpha, self.beta = layer.weight, layer.bias, gradient, alpha, beta
        self.turned_weight = self.weight.mT
        c, d_in, d_out = self.weight.shape
        self.turn = turn and d_out < NARROW
        make = self.weight.new_empty
        self.z = make(c, d_out, rows).mT if self.turn else make(c, rows, d_out)
        self.turned = make(c, d_out, d_in) if self.turn else None  # ∂Wᵀ

    def forward(self, x: Tensor) -> Tensor:
        self.x, self.turned_x = x, x.mT
        if self.bias is None:
            return torch.bmm(x, self.weight, out=self.z)
        return torch.baddbmm(self.bias, x, self.weight, beta=self.beta, alpha=self.alpha, out=self.z)

    def backward(self, delta: Tensor, into: Tensor | None = None) -> None:
        """∂W and ∂b, and ∂x `into` where it is asked for."""
        if self.turned is not None:
            self.gradient.weight.copy_(torch.bmm(delta.mT, self.x, out=self.turned).mT)
        else:
            torch.bmm(self.turned_x, delta, out=self.gradient.weight)
        if self.gradient.bias is not None:
            torch.sum(delta, 1, keepdim=True, out=self.gradient.bias)
            if self.beta != 1:
                self.gradient.bias.mul_(self.beta)
        if into is not None:
            torch.bmm(delta, self.turned_weight, out=into)
        if self.alpha != 1:
            self.gradient.weight.mul_(self.alpha)
            if into is not None:
                into.mul_(self.alpha)
