"""The arithmetic of constructed networks on tensors: as the targets' own, with each rounding countable.

vᵏ is a product of k factors (at most k − 1 roundings deep), never a library `pow`; √ of what rounding made negative is
0.
"""

from __future__ import annotations

from fractions import Fraction

import torch
from torch import Tensor

from sumformer.kernels.chebyshev_rows import chebyshev_rows
from sumformer.targets.torch_evaluation import TorchOperations
from sumformer.targets.tree import Function

INLINED = 12  # rows of a Chebyshev table that a compiler may write into one another


class NetworkOperations(TorchOperations):
    """Values of shape (…, width) in one dtype on one device."""

    def number(self, value: float) -> Tensor:
        """A constant of shape (1,), rounded to the arithmetic's dtype; what an exported graph fills is in float32."""
        if torch.compiler.is_exporting():
            return torch.tensor([value], dtype=self.dtype, device=self.device)
        return torch.full((1,), value, dtype=self.dtype, device=self.device)

    def unary(self, fn: Function, v: Tensor) -> Tensor:
        return super().unary(fn, v.clamp(min=0) if fn == "sqrt" else v)

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


def as_float(value: Fraction | int) -> float:
    """The nearest float64; beyond its range ±∞, as IEEE arithmetic has it."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def chebyshev_table(t: Tensor, degree: int) -> Tensor:
    """t (…, n) ∈ [−1, 1] → (…, n, degree + 1): T_0 = 1, T_1 = t, T_{k+1} = 2t·T_k − T_{k−1}; tokens side by side."""
    if (table := chebyshev_rows(t, degree)) is not None:
        return table.mT
    rows = [torch.ones_like(t), t]
    twice = 2 * t
    for k in range(1, degree):
        row = twice * rows[-1] - rows[-2]
        rows.append(_written(row) if k % INLINED > INLINED - 3 else row)
    return torch.stack(rows[: degree + 1], dim=-2).mT


def _written(row: Tensor) -> Tensor:
    """The same row; a compiler must write it to memory, where it would inline 1.6ᵏ terms for T_k."""
    inlining = torch.compiler.is_compiling() and not torch.compiler.is_exporting()
    return row.as_strided(row.shape, row.stride()) if inlining else row
