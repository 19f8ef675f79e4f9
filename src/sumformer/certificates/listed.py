"""A network of token lists under attack: w_j copies of token j are written out, the own token first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

MOST = 1000  # tokens written out


@dataclass(frozen=True)
class Tokens:
    """X (batch, n, d), zeros after the last token of a row, and which are tokens."""

    X: Tensor
    keep: Tensor


class Listed:
    """The interface of a sum over tokens for a network that only takes lists; whole counts, at most `MOST` tokens."""

    most_tokens = MOST

    def __init__(self, network: Any) -> None:
        self.network = network
        self.inside: torch.dtype = network.inside
        self.outside: torch.dtype = network.outside

    @property
    def latent_dimension(self) -> int:
        return int(getattr(self.network, "latent_dimension", 1))

    def parameters(self) -> Iterator[nn.Parameter]:
        out: Iterator[nn.Parameter] = self.network.parameters()
        return out

    def summarise(self, z: Tensor, weights: Tensor | None = None) -> Tokens:
        counts = torch.ones(z.shape[:2], device=z.device) if weights is None else weights
        whole = counts.detach().double().floor()
        ends = whole.cumsum(1)
        places = torch.arange(int(ends[:, -1].max()), device=z.device, dtype=torch.float64)
        keep = places < ends[:, -1:]
        owner = torch.searchsorted(ends, places.expand(len(z), -1).contiguous(), right=True).clamp_max(z.shape[1] - 1)
        X = z.gather(1, owner[..., None].expand(-1, -1, z.shape[2]))
        return Tokens(torch.where(keep[..., None], X, 0.0), keep)

    def apply(self, x: Tensor, state: Tokens) -> Tensor:
        """The output of the first token, which is x."""
        mask = None if bool(state.keep.all()) else state.keep
        out: Tensor = self.network(state.X, attention_mask=mask)
        return out[:, :1]
