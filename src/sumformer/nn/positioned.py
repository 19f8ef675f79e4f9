"""N(X) = M((x_1, 1), …, (x_n, n)): an equivariant network M of tokens with their places, a function of sequences."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sumformer.nn.inputs import check_tokens, keep_from_attention_mask
from sumformer.nn.pretrained import PretrainedModule
from sumformer.nn.segments import Segments, segments_of
from sumformer.targets.positions import with_positions


class Positioned(PretrainedModule):
    """(batch, n, d) → (batch, n, width) by a `network` of tokens of width d + 1, whose last coordinate is i = 1, …, n.

    As saved: `config.json` has the network's own description under `network`, and its tensors in `model.safetensors`
    have their names after `network.`. The place of a token is its rank among the tokens that `attention_mask` keeps, or
    in its own sequence of a pack.
    """

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network
        self.d: int = network.d - 1

    @property
    def equivariant(self) -> bool:
        return False

    @property
    def exact_n(self) -> int | None:
        n: int | None = self.network.exact_n
        return n

    @property
    def arithmetic(self) -> str:
        return str(self.network.arithmetic)

    @property
    def inside(self) -> torch.dtype:
        dtype: torch.dtype = self.network.inside
        return dtype

    @property
    def outside(self) -> torch.dtype:
        dtype: torch.dtype = self.network.outside
        return dtype

    @property
    def latent_dimension(self) -> int:
        return int(self.network.latent_dimension)

    def forward(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        *,
        cu_seqlens: Tensor | Segments | None = None,
        max_seqlen: int | None = None,
    ) -> Tensor:
        check_tokens("Positioned", x, self.d)
        keep_from_attention_mask("Positioned", x, attention_mask)
        segments = segments_of("Positioned", x, attention_mask, cu_seqlens, max_seqlen)
        x = x.to(torch.promote_types(x.dtype, self.outside))  # in which the network knows its places
        if segments is None:
            out: Tensor = self.network(with_positions(x, attention_mask), attention_mask=attention_mask)
            return out
        placed = torch.cat([x, (segments.ranks + 1).to(x.dtype).view(1, -1, 1)], dim=-1)
        packed: Tensor = self.network(placed, cu_seqlens=segments)
        return packed
