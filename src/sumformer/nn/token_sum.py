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


def in_groups(values: Tensor, group: int, spare: bool = False) -> Tensor:
    """(batch, n, m) → (batch, ⌈n/group⌉, group, m), zeros appended.

    With `spare`, under torch.compile, one more group of zeros: a matrix product over groups of which there may be a
    single one is compiled twice.
    """
    n, compiled = values.shape[1], torch.compiler.is_compiling()
    missing = (n + group - 1) // group * group - n
    if not compiled and missing == 0:
        return torch.unflatten(values, 1, (-1, group))
    if spare and compiled and not torch.compiler.is_exporting():
        missing = missing + group
    zeros = values.new_zeros(values.shape[0], missing, values.shape[2])
    return torch.unflatten(torch.cat([values, zeros], dim=1), 1, (-1, group))


def sum_groups(partial: Tensor, group: int, count: int) -> Tensor:
    """(batch, g, m) → (batch, m) by `count` further levels; levels past the root add zeros, exactly."""
    for _ in range(count):
        if not torch.compiler.is_compiling() and partial.shape[1] == 1:
            break
        partial = in_groups(partial, group).sum(dim=2)
    return partial[:, 0]
