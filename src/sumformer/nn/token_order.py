"""The place of a token is its rank among the real ones, so that padding moves nobody.

ranks     token i ↦ #{real tokens before i}
compact   real tokens to the front, in order, padding behind them;   `spread` is its inverse
"""

from __future__ import annotations

import torch
from torch import Tensor

from sumformer.errors import ShapeError
from sumformer.nn.inputs import rank_among_kept


def check_fits(where: str, x: Tensor, keep: Tensor | None, n_max: int) -> None:
    """At most `n_max` real tokens per sequence; padding does not count.

    Compiled code cannot raise on the contents of a mask: there the refusal is torch's own assertion (RuntimeError).
    """
    if keep is None:
        if x.shape[1] > n_max:
            raise ShapeError(where, f"at most n_max = {n_max} tokens", x.shape)
    elif torch.compiler.is_compiling() or x.shape[1] > n_max:
        check_lengths(where, keep.sum(-1), n_max, x.shape)


def check_lengths(where: str, lengths: Tensor, n_max: int, shape: torch.Size) -> None:
    """Every sequence of a padded or packed batch of this `shape` has at most `n_max` real tokens."""
    if torch.compiler.is_compiling():
        torch._assert_async((lengths <= n_max).all(), f"{where}: expected at most n_max = {n_max} real tokens")
    elif bool((lengths > n_max).any()):
        longest = f"{int(lengths.max())} in a batch of {tuple(shape)}"
        raise ShapeError(where, f"at most n_max = {n_max} real tokens", longest)


def ranks(x: Tensor, keep: Tensor | None) -> Tensor:
    """(n,) without padding, (batch, n) with; padding gets 0."""
    return torch.arange(x.shape[1], device=x.device) if keep is None else rank_among_kept(keep)


def compact(x: Tensor, keep: Tensor | None) -> Tensor:
    """Real tokens to the front, in order."""
    if keep is None:
        return x
    return torch.zeros_like(x).scatter(1, _places(keep).unsqueeze(-1).expand_as(x), x)


def spread(x: Tensor, keep: Tensor | None) -> Tensor:
    """Every token back to where `compact` took it from."""
    if keep is None:
        return x
    return x.gather(1, _places(keep).unsqueeze(-1).expand_as(x))


def _places(keep: Tensor) -> Tensor:
    """Where `compact` puts each token: a permutation of 0 … n−1 in every row."""
    real = keep.long().cumsum(-1)
    behind = (~keep).long().cumsum(-1) + real[:, -1:]
    return torch.where(keep, real, behind) - 1
