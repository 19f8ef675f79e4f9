"""The two sub-layers of a block, each with what practice puts around it: D Att(N_1 X) and D FC(N_2 X)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from sumformer.nn.inputs import check_tokens
from sumformer.nn.layer import Layer
from sumformer.nn.segments import Segments
from sumformer.nn.sequence_map import pass_on, stream_through


class SubLayers(Layer, ABC):
    """`attention` is any layer that takes `key_padding_mask`; `feed_forward` any token-wise module.

    Causal order and packing are the attention's: it is given `is_causal`, and `cu_seqlens` with `max_seqlen` in the
    place of the mask, where they are asked for.

    Bare unless `attention_norm` and `feed_forward_norm` (token-wise modules, nn.LayerNorm say) or `dropout` are given.
    """

    def __init__(
        self,
        attention: nn.Module,
        feed_forward: nn.Module,
        attention_norm: nn.Module | None = None,
        feed_forward_norm: nn.Module | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.width = getattr(attention, "width", None)
        self.attention, self.feed_forward, self.dropout = attention, feed_forward, dropout
        self.attention_norm, self.feed_forward_norm = attention_norm, feed_forward_norm
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()

    @property
    def equivariant(self) -> bool:
        """As its sub-layers; an attention that does not say is not taken to be."""
        return bool(getattr(self.attention, "equivariant", False) and getattr(self.feed_forward, "equivariant", True))

    @abstractmethod
    def compose(self, x: Tensor, att: Callable[[Tensor], Tensor]) -> Tensor:
        """The block's formula, `att` its first sub-layer."""

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        return self.compose(x, self._att(keep, None, False))

    def causal_formula(self, x: Tensor) -> Tensor:
        return self.compose(x, self._att(None, None, True))

    def packed_formula(self, x: Tensor, segments: Segments, is_causal: bool) -> Tensor:
        return self.compose(x, self._att(None, segments, is_causal))

    def stream(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """The next tokens of a stream: their outputs in causal order, and the state for those that follow.

        The state is the attention's; what is token-wise has none.
        """
        where = f"{type(self).__name__}.stream"
        check_tokens(where, x, self.width)

        def att(x: Tensor) -> Tensor:
            nonlocal state
            out, state = stream_through(where, self.attention, self._normed(x), state)
            dropped: Tensor = self.drop(out)
            return dropped

        return self.compose(x, att), state

    def _att(self, keep: Tensor | None, segments: Segments | None, is_causal: bool) -> Callable[[Tensor], Tensor]:
        """x ↦ D Att(N_1 x)."""
        keywords = pass_on(self.attention, keep, segments, is_causal)

        def att(x: Tensor) -> Tensor:
            out: Tensor = self.drop(self.attention(self._normed(x), **keywords))
            return out

        return att

    def _normed(self, x: Tensor) -> Tensor:
        """N_1 x."""
        return x if self.attention_norm is None else self.attention_norm(x)

    def fc(self, x: Tensor) -> Tensor:
        """D FC(N_2 x)."""
        normed = x if self.feed_forward_norm is None else self.feed_forward_norm(x)
        out: Tensor = self.drop(self.feed_forward(normed))
        return out
