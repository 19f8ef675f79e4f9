"""Sparse attention of the next tokens of a stream, to the keys that were kept: those a later token may attend to.

Token k meets the keys of its list, A_k ∩ {j ≤ k}, gathered: O(connections). Of a window the last w keys are kept, of
global tokens their own, of FIXED the current block and the ends of all others. Strides and random tokens reach back
without bound: there all keys are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sumformer.nn.key_value_state import KeyValueState
from sumformer.nn.normalisers import Normaliser
from sumformer.nn.patterns.step import Step

ELEMENTS = 2**22  # numbers gathered at a time


@dataclass(frozen=True)
class Held:
    """The tokens kept for one step of a pattern."""

    places: Tensor
    """(m,), ascending: their places in the stream, from 0."""
    tokens: KeyValueState

    @classmethod
    def of(cls, keys: Tensor, values: Tensor, first: int) -> Held:
        """All tokens of keys and values, which start at place `first`."""
        places = torch.arange(first, first + keys.shape[2], device=keys.device)
        return cls(places, KeyValueState(keys, values))

    def then(self, other: Held) -> Held:
        return Held(torch.cat([self.places, other.places]), self.tokens.then(other.tokens))

    def lasting(self, step: Step, t: int) -> Held:
        """Those that a token from place t on may attend to."""
        kept = step.lasting(self.places, t).nonzero()[:, 0]
        return self if kept.shape == self.places.shape else Held(self.places[kept], self.tokens.only(kept))


@dataclass(frozen=True)
class SparseState:
    """What is kept of a stream."""

    count: int
    """Tokens so far."""
    broken: Tensor
    """(batch, 1, 1): one of them was not finite, so that nothing later is."""
    held: tuple[Held, ...]
    """One for each group of heads with a step of its own."""


def attend_to_held(q: Tensor, held: Held, step: Step, first: int, rho: Normaliser) -> Tensor:
    """q (batch, h, n, d), the tokens from place `first` on, which are the last ones held → (batch, h, n, d)."""
    n = q.shape[2]
    longest = step.earlier(first + n - 1, 1, q.device)[0].shape[-1]
    size = max(1, ELEMENTS // (longest * q[:, :, 0].numel() or 1))
    outs = []
    for start in range(0, n, size):
        queries = q[:, :, start : start + size].unsqueeze(-2)
        j, counts = step.earlier(first + start, queries.shape[2], q.device)
        at = torch.searchsorted(held.places, j).clamp(max=held.places.shape[0] - 1)
        weights = rho(queries @ held.tokens.keys[:, :, at].mT, counts.unsqueeze(-2))
        outs.append((weights @ held.tokens.values[:, :, at]).squeeze(-2))
    return torch.cat(outs, 2)
