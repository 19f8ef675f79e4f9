"""A 2.1–2.2: head(X) = ρ((X W_Q)(X W_K)ᵀ/√d) X W_V,   SoftmaxAttention(X) = [head_1, …, head_h] W_O."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sumformer.nn.attend import attend, causal_attend, finite_part, lower_attend
from sumformer.nn.inputs import check_piece
from sumformer.nn.key_value_state import KeyValueState
from sumformer.nn.multi_head import MultiHead
from sumformer.nn.normalisers import Normaliser, normaliser_or_softmax


@dataclass(frozen=True)
class SoftmaxState:
    """All tokens of a stream so far."""

    broken: Tensor
    """(batch, h, 1, 1): one of them was not finite, so that nothing later is."""
    held: KeyValueState


class SoftmaxAttention(MultiHead):
    """`nhead` heads of size `d_head` (default d_model / nhead), all attending to all. Cost O(n²).

    `normaliser` is ρ, softmax unless another one is given. d in √d is the size of a head; `scale=False` leaves the
    division out, and `query_bias=True` adds a bias to X W_Q, as the construction of Y does. No other biases.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int = 1,
        d_head: int | None = None,
        normaliser: Normaliser | None = None,
        query_bias: bool = False,
        scale: bool = True,
    ) -> None:
        super().__init__(d_model, nhead, d_head, query_bias)
        self.normaliser = normaliser_or_softmax("SoftmaxAttention", normaliser)
        self.scale = scale

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        return self.join(attend(*self._qkv(x), self.normaliser, self._factor, keep), x)

    def causal_formula(self, x: Tensor) -> Tensor:
        return self.join(causal_attend(*self._qkv(x), self.normaliser, self._factor), x)

    def stream(self, x: Tensor, state: SoftmaxState | None = None) -> tuple[Tensor, SoftmaxState]:
        """The next tokens of a stream: their outputs in causal order, and the state for those that follow.

        The state holds the keys and values of all tokens so far.
        """
        q, k, v = self._qkv(check_piece("SoftmaxAttention.stream", x, self.width, state, SoftmaxState))
        k, v, broken = finite_part(k, v)
        held = KeyValueState(k, v)
        if state is not None:
            held, broken = state.held.then(held), broken | state.broken
        heads = lower_attend(q, held.keys, held.values, self.normaliser, self._factor)
        return self.join(torch.where(broken, torch.nan, heads), x), SoftmaxState(broken[:, :, -1:].clone(), held)

    @property
    def _factor(self) -> float:
        return self.d_head**-0.5 if self.scale else 1.0

    def _qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.queries(x), self.keys(x), self.values(x)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, scale={self.scale}"
