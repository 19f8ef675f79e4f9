"""A layer: tokens in, tokens out, padding out of sight. `formula` is the definition; what surrounds it is shared."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

from sumformer.errors import InputError
from sumformer.nn.inputs import check_tokens, keep_from_key_padding_mask, zero_padding
from sumformer.nn.pretrained import PretrainedModule


class Layer(PretrainedModule, ABC):
    """(batch, n, width) → (batch, n, ·) with `key_padding_mask` (batch, n), True = ignore.

    `formula` sees padding as exact zeros, and what it leaves there is erased: padded inputs, NaN and inf included, get
    zero gradient and padded outputs are zero.
    """

    width: int | None = None
    """The width every input must have; None accepts any."""

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        where = type(self).__name__
        check_tokens(where, x, self.width)
        keep = keep_from_key_padding_mask(where, x, key_padding_mask)
        return zero_padding(self.formula(zero_padding(x, keep), keep), keep)

    @abstractmethod
    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """The definition. `keep` (batch, n) marks the real tokens; None means all are; padding in x is already 0."""


def check_positive(where: str, **sizes: int) -> None:
    """Every size must be an integer ≥ 1; all that are not are named at once."""
    wrong = [f"{name} = {size!r}" for name, size in sizes.items() if not isinstance(size, int) or size < 1]
    if wrong:
        raise InputError(f"{where}: expected integers ≥ 1, got {', '.join(wrong)}")
