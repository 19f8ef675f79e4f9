"""AdamW over a flat tensor (M, P) with a learning rate per member; nothing leaves the device, so it can be captured."""

from __future__ import annotations

import torch
from torch import Tensor


class FlatAdamW:
    """m ← β₁m + (1−β₁)g,  v ← β₂v + (1−β₂)g²,  θ ← (1 − ηλ)θ − η m̂/(√v̂ + ε)."""

    def __init__(self, flat: Tensor, rates: Tensor, betas: tuple[float, float], eps: float, decay: float) -> None:
        self.flat, self.rates, self.betas, self.eps, self.decay = flat, rates, betas, eps, decay
        self.first = torch.zeros_like(flat)
        self.second = torch.zeros_like(flat)
        self.change = torch.zeros_like(flat)

    @torch.no_grad()
    def step(self, gradient: Tensor, number: Tensor, factor: Tensor) -> None:
        """`number`: how many steps were made before, `factor`: of the learning rates now; both on the device."""
        t = (number + 1).double()
        b1, b2 = self.betas
        rate = self.rates * factor
        self.first.lerp_(gradient, 1 - b1)
        self.second.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
        size = (rate / (1 - b1**t)).to(self.flat.dtype)
        root = (1 - b2**t).sqrt().to(self.flat.dtype)
        if self.decay:
            self.flat.mul_(1 - rate.to(self.flat.dtype) * self.decay)
        torch.sqrt(self.second, out=self.change).div_(root).add_(self.eps)
        self.flat.sub_(torch.div(self.first, self.change, out=self.change).mul_(size))
