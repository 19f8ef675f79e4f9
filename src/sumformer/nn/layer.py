"""A layer: tokens in, tokens out, padding out of sight. `formula` is the definition; what surrounds it is shared."""

from __future__ import annotations

from abc import ABC
from typing import Any

from torch import Tensor

from sumformer.errors import InputError
from sumformer.nn.inputs import check_tokens, keep_from_key_padding_mask, with_dtypes_named
from sumformer.nn.segments import Segments, segments_of
from sumformer.nn.sequence_map import SequenceMap


class Layer(SequenceMap, ABC):
    """(batch, n, width) → (batch, n, ·) with `key_padding_mask` (batch, n), True = ignore.

    `formula` sees padding as exact zeros, and what it leaves there is erased: padded inputs, NaN and inf included, get
    zero gradient and padded outputs are zero. With `is_causal` output i depends on x_1 … x_i alone. A pack of sequences
    is x (1, total, width) with `cu_seqlens` (N + 1,), int32, or `Segments`, and `max_seqlen`.
    """

    width: int | None = None
    """The width every input must have; None accepts any."""

    @with_dtypes_named
    def forward(
        self,
        x: Tensor,
        key_padding_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cu_seqlens: Tensor | Segments | None = None,
        max_seqlen: int | None = None,
    ) -> Tensor:
        where = type(self).__name__
        check_tokens(where, x, self.width)
        segments = segments_of(where, x, key_padding_mask, cu_seqlens, max_seqlen)
        return self.evaluate(x, keep_from_key_padding_mask(where, x, key_padding_mask), segments, is_causal)


class TokenWise(Layer, ABC):
    """No token looks at another: causal as it stands, and on a pack as on one sequence."""

    def evaluate(self, x: Tensor, keep: Tensor | None, segments: Segments | None, is_causal: bool) -> Tensor:
        return super().evaluate(x, keep, segments, is_causal=False)

    def packed_formula(self, x: Tensor, segments: Segments, is_causal: bool) -> Tensor:
        return self.formula(x, None)

    def stream(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """The next tokens of a stream: nothing is carried from one to another."""
        return self.formula(check_tokens(f"{type(self).__name__}.stream", x, self.width), None), None


def check_positive(where: str, **sizes: int) -> None:
    """Every size must be an integer ≥ 1; all that are not are named at once."""
    wrong = [f"{k} = {v!r}" for k, v in sizes.items() if not isinstance(v, int) or isinstance(v, bool) or v < 1]
    if wrong:
        raise InputError(f"{where}: expected integers ≥ 1, got {', '.join(wrong)}")
