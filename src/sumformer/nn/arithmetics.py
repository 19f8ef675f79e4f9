"""float64, float32 or mixed: the dtype a constructed network computes in (inside), and that of its tokens (outside)."""

from __future__ import annotations

import torch

from sumformer.errors import InputError

ARITHMETICS: dict[str, tuple[torch.dtype, torch.dtype]] = {  # inside, outside
    "float64": (torch.float64, torch.float64),
    "float32": (torch.float32, torch.float32),
    "mixed": (torch.float64, torch.float32),
}


def dtypes_of(arithmetic: str, where: str) -> tuple[torch.dtype, torch.dtype]:
    """(inside, outside); `where` asks."""
    if arithmetic not in ARITHMETICS:
        raise InputError(f"{where}: expected arithmetic in {tuple(ARITHMETICS)}, got {arithmetic!r}")
    return ARITHMETICS[arithmetic]
