"""The arithmetic of constructed networks on tensors: as the targets' own, with each rounding countable.

vᵏ is a product of k factors (at most k − 1 roundings deep), never a library `pow`.
"""

from __future__ import annotations

from fractions import Fraction

import torch
from torch import Tensor

from sumformer.targets.torch_evaluation import TorchOperations


class NetworkOperations(TorchOperations):
    """Values of shape (…, width) in one dtype on one device."""

    def number(self, value: float) -> Tensor:
        """A constant of shape (1,), rounded to the arithmetic's dtype."""
        return torch.full((1,), value, dtype=self.dtype, device=self.device)

    def power(self, v: Tensor, k: int) -> Tensor:
        if k < 0:
            return 1 / self.power(v, -k)
        result: Tensor | None = None
        while k:
            if k & 1:
                result = v if result is None else result * v
            k >>= 1
            if k:
                v = v * v
        return torch.ones_like(v) if result is None else result


def as_float(value: Fraction) -> float:
    """The nearest float64; beyond its range ±∞, as IEEE arithmetic has it."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def chebyshev_table(t: Tensor, degree: int) -> Tensor:
    """t (…) ∈ [−1, 1] → (…, degree + 1): T_0 = 1, T_1 = t, T_{k+1} = 2t·T_k − T_{k−1}."""
    rows = [torch.ones_like(t), t]
    twice = 2 * t
    for _ in range(1, degree):
        rows.append(twice * rows[-1] - rows[-2])
    return torch.stack(rows[: degree + 1], dim=-1)
