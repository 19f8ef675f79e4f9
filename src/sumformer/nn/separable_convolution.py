"""Y §5, SepConv: SeparableConvolution(X) = (X * W_C) W_O,   (X * W_C)_i = Σ_{|r| ≤ kernel_size // 2} W_C[r] ⊙ x_{i+r}.

The paper's X + (X * W_C) W_O is this sub-layer with the residual that a block puts around it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from sumformer.errors import InputError
from sumformer.nn.layer import Layer, check_positive
from sumformer.nn.token_order import compact, spread


class SeparableConvolution(Layer):
    """A depth-wise convolution over the real tokens, zeros beyond both ends, then a token-wise map. Cost O(n).

    W_C is (kernel_size, d_model), drawn from N(0, 1/kernel_size); its middle row meets the token itself.
    """

    def __init__(self, d_model: int, kernel_size: int = 3) -> None:
        super().__init__()
        check_positive("SeparableConvolution", d_model=d_model, kernel_size=kernel_size)
        if kernel_size % 2 == 0:
            raise InputError(f"SeparableConvolution: expected an odd kernel_size, got {kernel_size}")
        self.d_model, self.kernel_size = d_model, kernel_size
        self.width = d_model
        self.W_C = nn.Parameter(torch.randn(kernel_size, d_model) * kernel_size**-0.5)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    @property
    def equivariant(self) -> bool:
        """A kernel of one token sees no neighbours."""
        return self.kernel_size == 1

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        out: Tensor = self.W_O(spread(self._convolve(compact(x, keep)), keep))
        return out

    def _convolve(self, x: Tensor) -> Tensor:
        """X * W_C as a sum of shifts: torch's conv1d is compiled anew for every length."""
        half, n = self.kernel_size // 2, x.shape[1]
        x = functional.pad(x, (0, 0, half, half))
        out = self.W_C[0] * x[:, :n]
        for r in range(1, self.kernel_size):
            out = out + self.W_C[r] * x[:, r : r + n]
        return out

    def extra_repr(self) -> str:
        return f"ℝ^{{n×{self.d_model}}} → ℝ^{{n×{self.d_model}}}, window of {self.kernel_size}"
