"""Scaled(x) = factor · module(x): the sum over n tokens of a φ scaled by 1/n̄ is of the size of a mean, and still a sum.

A mean forgets how many tokens there are; a plain sum starts n times too large.
"""

from __future__ import annotations

from torch import Tensor, nn

from sumformer.nn.pretrained import PretrainedModule


class Scaled(PretrainedModule):
    """`factor` is fixed, not learned."""

    def __init__(self, module: nn.Module, factor: float) -> None:
        super().__init__()
        self.module, self.factor = module, factor

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.factor * self.module(x)
        return out
