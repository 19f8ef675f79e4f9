"""scaled(x, c) = c·x, with c at the precision of x wherever the code runs."""

from __future__ import annotations

import torch
from torch import Tensor


def scaled(x: Tensor, factor: float) -> Tensor:
    """An exported graph holds Python numbers in float32, so there c becomes a tensor of x's own dtype."""
    if torch.compiler.is_exporting():
        return x * torch.tensor(factor, dtype=x.dtype, device=x.device)
    return x * factor
