"""A 2.4: Encoder = head ∘ Block_ℓ ∘ … ∘ Block_1 ∘ positions ∘ embedding."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn

from sumformer.nn.inputs import keep_from_attention_mask
from sumformer.nn.pretrained import PretrainedModule
from sumformer.nn.token_embedding import TokenEmbedding
from sumformer.nn.vector_embedding import VectorEmbedding


class Encoder(PretrainedModule):
    """Tokens (batch, n) or vectors (batch, n, d) → what `head` makes of them; without a head, the last block's tokens.

    `blocks`, `positions` and `head` take `key_padding_mask`; any layer of this package may stand among the blocks.
    """

    def __init__(
        self,
        embedding: TokenEmbedding | VectorEmbedding,
        blocks: Iterable[nn.Module],
        head: nn.Module | None = None,
        positions: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.embedding, self.positions, self.blocks, self.head = embedding, positions, nn.ModuleList(blocks), head

    @property
    def equivariant(self) -> bool:
        """As its parts: positions, or one part tied to token order, end it; a part that does not say ends it too."""
        parts = (self.positions, *self.blocks, self.head)
        return all(bool(getattr(part, "equivariant", False)) for part in parts if part is not None)

    @property
    def invariant(self) -> bool:
        """f(PX) = f(X): everything before an invariant head is equivariant."""
        return self.equivariant and bool(getattr(self.head, "invariant", False))

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        keep = keep_from_attention_mask("Encoder", self.embedding.check("Encoder", x), attention_mask)
        padding = None if keep is None else ~keep
        z: Tensor = self.embedding(x, key_padding_mask=padding)
        for part in (self.positions, *self.blocks, self.head):
            z = z if part is None else part(z, key_padding_mask=padding)
        return z

    def extra_repr(self) -> str:
        names = (self.head and "head", f"{len(self.blocks)} blocks", self.positions and "positions", "embedding")
        return " ∘ ".join(name for name in names if name)
