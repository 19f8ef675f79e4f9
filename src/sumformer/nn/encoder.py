"""A 2.4: Encoder = head ∘ Block_ℓ ∘ … ∘ Block_1 ∘ positions ∘ embedding."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn

from sumformer.nn.inputs import keep_from_attention_mask
from sumformer.nn.pretrained import PretrainedModule
from sumformer.nn.segments import Segments, segments_of
from sumformer.nn.sequence_map import pass_on
from sumformer.nn.token_embedding import TokenEmbedding
from sumformer.nn.vector_embedding import VectorEmbedding


class Encoder(PretrainedModule):
    """Tokens (batch, n) or vectors (batch, n, d) → what `head` makes of them; without a head, the last block's tokens.

    `blocks`, `positions` and `head` take `key_padding_mask`; any layer of this package may stand among the blocks. With
    `is_causal` each of them is causal. A pack of sequences is (1, total) tokens or (1, total, d) vectors with
    `cu_seqlens` and `max_seqlen`; a head that pools gives one output per sequence.
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

    def forward(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cu_seqlens: Tensor | Segments | None = None,
        max_seqlen: int | None = None,
    ) -> Tensor:
        keep = keep_from_attention_mask("Encoder", self.embedding.check("Encoder", x), attention_mask)
        segments = segments_of("Encoder", x, attention_mask, cu_seqlens, max_seqlen)
        for part in (self.embedding, self.positions, *self.blocks, self.head):
            x = x if part is None else part(x, **pass_on(part, keep, segments, is_causal))
        return x

    def extra_repr(self) -> str:
        names = (self.head and "head", f"{len(self.blocks)} blocks", self.positions and "positions", "embedding")
        return " ∘ ".join(name for name in names if name)
