"""(k_0, k_1, …) ↦ (0, …, 0, 1, …, 1, …): the cells in ascending order, cell c as often as k_c says.

The j-th is #{c : k_0 + … + k_c ≤ j}. No size depends on the numbers, so that a compiler can trace it.
"""

from __future__ import annotations

import torch
from torch import Tensor


def expand(counts: Tensor, m: int) -> Tensor:
    """counts (rows, cells), m in every row → (rows, m)."""
    upto = counts.cumsum(1)
    ends = upto.new_zeros(upto.shape[0], m + 1).scatter_add(1, upto, torch.ones_like(upto))
    return ends.cumsum(1)[:, :m]
