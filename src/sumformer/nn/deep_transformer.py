"""Y, S: DeepTransformer = head ∘ layers ∘ positions ∘ embedding, all in float64, for sequences of exactly n tokens.

`layers` are blocks with attention of two heads of size 1, and stacks of token-wise layers with one or four units.
Constructed without positions it is 0 where a token lies outside the box; with them it is not.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from sumformer.errors import InputError, NotSupportedError
from sumformer.nn.positions import LearnedPositions
from sumformer.nn.residual_block import ResidualBlock
from sumformer.nn.sequence_reader import SequenceReader
from sumformer.nn.token_head import TokenHead
from sumformer.nn.token_stack import TokenStack
from sumformer.nn.vector_embedding import VectorEmbedding


class DeepTransformer(SequenceReader):
    """(batch, n, d) → (batch, n, width of the head)."""

    arithmetic = "float64"
    inside = outside = torch.float64

    def __init__(
        self,
        n: int,
        embedding: VectorEmbedding,
        layers: Iterable[nn.Module],
        head: TokenHead,
        positions: LearnedPositions | None = None,
    ) -> None:
        super().__init__()
        self.d, self.n, self.embedding, self.positions, self.head = embedding.d_in, n, embedding, positions, head
        self.layers = nn.ModuleList(layers)

    @property
    def equivariant(self) -> bool:
        return self.positions is None

    @property
    def exact_n(self) -> int:
        return self.n

    @property
    def latent_dimension(self) -> int:
        """The width of a token on its way."""
        return self.embedding.d_model

    @property
    def attention_layers(self) -> int:
        return sum(isinstance(layer, ResidualBlock) for layer in self.layers)

    @property
    def feed_forward_layers(self) -> int:
        return sum(len(layer) for layer in self.layers if isinstance(layer, TokenStack))

    def _read(self, x: Tensor, keep: Tensor | None) -> Tensor:
        if keep is not None and (torch.compiler.is_compiling() or not bool(keep.all())):
            raise NotSupportedError(f"DeepTransformer: it is a function of exactly {self.n} tokens, without padding")
        if x.shape[1] != self.n:
            raise InputError(f"DeepTransformer: expected n = {self.n} tokens, got {x.shape[1]}")
        z = self.embedding(x.to(self.inside))
        z = z if self.positions is None else self.positions(z)
        for layer in self.layers:
            z = layer(z)
        out: Tensor = self.head(z)
        return out

    def fuse(self, fused: bool = True) -> DeepTransformer:
        """Look-up layers by search, or one after the other; the same network either way."""
        for layer in self.layers:
            if isinstance(layer, TokenStack) and layer.is_look_up():
                layer.fused = fused
        return self

    def extra_repr(self) -> str:
        counts = f"{self.attention_layers} attention and {self.feed_forward_layers} token-wise layers"
        return f"ℝ^{{{self.n}×{self.d}}} → ℝ^{{{self.n}×{self.head.d_out}}}, {counts}"
