"""How an ensemble is trained: everything that is the same for its members."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from sumformer.errors import InputError

Schedule = Literal["constant", "one-cycle"]


@dataclass(frozen=True)
class Recipe:
    """AdamW (Adam with weight_decay = 0) on the mean squared error; `standardise` centres inputs, scales outputs."""

    epochs: int
    batch: int = 50
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    schedule: Schedule = "constant"
    warm_up: float = 0.1  # of all steps, one-cycle only
    standardise: bool = False
    validate_every: int = 1  # epochs
    tf32: bool = False  # on GPU: matrix products with 10-bit mantissas

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch, self.validate_every) < 1:
            raise InputError("Recipe: expected epochs, batch and validate_every ≥ 1")
        if self.schedule not in ("constant", "one-cycle"):
            raise InputError(f"Recipe: expected schedule 'constant' or 'one-cycle', got {self.schedule!r}")

    def factor(self, step: Tensor, steps: int) -> Tensor:
        """The learning rate at `step` of `steps` over its largest: 1, or up linearly from 1/25 and down by a cosine."""
        if self.schedule == "constant":
            return torch.ones_like(step, dtype=torch.float32)
        rise = max(1.0, self.warm_up * steps)
        t = step.float()
        up = 0.04 + 0.96 * t / rise
        down = 0.5 * (1 + torch.cos(math.pi * (t - rise) / max(1.0, steps - rise)))
        return torch.where(t < rise, up, down.clamp_min(1e-4))
