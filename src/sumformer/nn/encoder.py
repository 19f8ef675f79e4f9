"""A 2.4: Encoder = head ∘ Block_ℓ ∘ … ∘ Block_1 ∘ positions ∘ embedding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from sumformer.errors import InputError
from sumformer.nn.inputs import keep_from_attention_mask
from sumformer.nn.pretrained import PretrainedModule
from sumformer.nn.segments import Segments, segments_of
from sumformer.nn.sequence_map import pass_on, stream_through
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
        return all(bool(getattr(part, "equivariant", False)) for part in self._parts()[1:])

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
        for part in self._parts():
            x = part(x, **pass_on(part, keep, segments, is_causal))
        return x

    def stream(self, x: Tensor, state: tuple[Any, ...] | None = None) -> tuple[Tensor, tuple[Any, ...]]:
        """The next tokens of a stream: their outputs in causal order, and the state for those that follow.

        The state is that of every part, from the embedding to the head; None where a part is token-wise.
        """
        self.embedding.check("Encoder.stream", x)
        parts, after = self._parts(), []
        state = (None,) * len(parts) if state is None else state
        if not isinstance(state, tuple) or len(state) != len(parts):
            raise InputError(
                f"Encoder.stream: expected the state of its {len(parts)} parts, as it returns, got {state!r}"
            )
        for part, before in zip(parts, state, strict=True):
            x, own = stream_through("Encoder.stream", part, x, before)
            after.append(own)
        return x, tuple(after)

    def _parts(self) -> list[nn.Module]:
        parts = (self.embedding, self.positions, *self.blocks, self.head)
        return [part for part in parts if part is not None]

    def extra_repr(self) -> str:
        names = (self.head and "head", f"{len(self.blocks)} blocks", self.positions and "positions", "embedding")
        return " ∘ ".join(name for name in names if name)
