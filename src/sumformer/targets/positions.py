"""(x_1, …, x_n) ↦ ((x_1, 1), …, (x_n, n)): with its place as one more coordinate, no token can be taken for another.

The boxes 𝒳 × {i} are disjoint, so every continuous function of the sequence is a continuous equivariant function of
the tokens (x_i, i), and what is certified for those in the sup norm is certified for it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from sumformer.errors import InputError
from sumformer.targets.domain import Box, Tokens

if TYPE_CHECKING:
    from torch import Tensor


def with_position(box: Box, tokens: Tokens) -> Box:
    """𝒳 × [1, n]; for n = 1 the last interval is [1, 2], so that it has a length."""
    if not tokens.exact:
        raise InputError(f"positions: expected one number of tokens, as --tokens 8, got {tokens.formula()}")
    last = max(tokens.maximum, 2)
    return Box((*box.lower, Fraction(1)), (*box.upper, Fraction(last)))


def without_position(box: Box) -> Box:
    """𝒳 of 𝒳 × [1, n]."""
    return Box(box.lower[:-1], box.upper[:-1])


def check_positions(box: Box, tokens: Tokens) -> None:
    """The last coordinate of a positioned target's box runs from 1 to n."""
    if box.d < 2 or not tokens.exact or with_position(without_position(box), tokens) != box:
        raise InputError(f"positions: expected n tokens with 1:n as the last interval, got {box} and {tokens}")


def with_positions(X: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """(batch, n, d) → (batch, n, d + 1): the place of each token among the kept ones, from 1; padding gets 1.

    In float32 or wider: bfloat16 does not know 257.
    """
    import torch

    X = X.to(torch.promote_types(X.dtype, torch.float32))

    keep = torch.ones(X.shape[:2], dtype=torch.bool, device=X.device) if attention_mask is None else attention_mask != 0
    place = keep.long().cumsum(1).clamp_min(1)
    return torch.cat([X, place.to(X.dtype).unsqueeze(-1)], dim=-1)
