"""Σ_k over tokens as a fixed tree: groups of `group` consecutive tokens, then groups of `group` results, and so on.

The tree depends on n and `group` alone, not on the device, the batch or the slab size. Inside a group any order is
allowed; so each level costs at most group − 1 roundings, and ⌈log_group n⌉ levels serve n tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor


def levels(n_max: int, group: int) -> int:
    """The least L with group^L ≥ n_max, at least 1."""
    count, reach = 1, group
    while reach < n_max:
        count, reach = count + 1, reach * group
    return count


def pad_to_multiple(values: Tensor, group: int, dim: int = 1) -> Tensor:
    """Zeros appended along `dim` up to a multiple of `group`."""
    missing = -values.shape[dim] % group
    shape = list(values.shape)
    shape[dim] = missing
    return torch.cat([values, values.new_zeros(shape)], dim=dim)


def sum_groups(partial: Tensor, group: int, count: int) -> Tensor:
    """(batch, g, m) → (batch, m) by `count` further levels; levels past the root add zeros, exactly."""
    for _ in range(count):
        if not torch.compiler.is_compiling() and partial.shape[1] == 1:
            break
        padded = pad_to_multiple(partial, group)
        partial = padded.unflatten(1, (-1, group)).sum(dim=2)
    return partial[:, 0]
