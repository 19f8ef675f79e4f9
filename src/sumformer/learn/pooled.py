"""Pooled(X) = mean_i module(X)_i over the real tokens: a map of tokens to tokens as a map of sets to one vector."""

from __future__ import annotations

from torch import Tensor, nn

from sumformer.nn.average_attention import mean_of_kept
from sumformer.nn.inputs import keep_from_attention_mask
from sumformer.nn.pretrained import PretrainedModule


class Pooled(PretrainedModule):
    """`module` takes `attention_mask` and gives 0 at padding. A set without tokens gives zeros."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    @property
    def invariant(self) -> bool:
        return bool(getattr(self.module, "equivariant", False))

    @property
    def equivariant(self) -> bool:
        return self.invariant

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        keep = keep_from_attention_mask("Pooled", x, attention_mask)
        return mean_of_kept(self.module(x, attention_mask), keep)
