"""What attention keeps of a stream: the keys and values of the tokens that a later one may attend to."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class KeyValueState:
    """m tokens, per head. Under `torch.no_grad()` nothing else is kept alive."""

    keys: Tensor
    """(batch, h, m, d)"""
    values: Tensor
    """(batch, h, m, d)"""

    def then(self, other: KeyValueState) -> KeyValueState:
        """These tokens and those of `other` behind them."""
        return KeyValueState(torch.cat([self.keys, other.keys], 2), torch.cat([self.values, other.values], 2))

    def only(self, places: Tensor) -> KeyValueState:
        """The tokens at `places` among the m, copied: the others are set free."""
        return KeyValueState(self.keys.index_select(2, places), self.values.index_select(2, places))
