"""Y §5, SepConv: SeparableConvolution(X) = (X * W_C) W_O,   (X * W_C)_i = Σ_{|r| ≤ kernel_size // 2} W_C[r] ⊙ x_{i+r}.

The paper's X + (X * W_C) W_O is this sub-layer with the residual that a block puts around it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from sumformer.errors import InputError
from sumformer.nn.inputs import check_piece
from sumformer.nn.layer import Layer, check_positive
from sumformer.nn.segments import Segments
from sumformer.nn.token_order import compact, spread


@dataclass(frozen=True)
class ConvolutionState:
    """The last kernel_size // 2 tokens of a stream, (batch, kernel_size // 2, d_model), zeros before its start."""

    tail: Tensor


class SeparableConvolution(Layer):
    """A depth-wise convolution over the real tokens, zeros beyond both ends, then a token-wise map. Cost O(n).

    W_C is (kernel_size, d_model), drawn from N(0, 1/kernel_size); its middle row meets the token itself. In causal
    order the rows behind the middle one, which meet later tokens, are left out.
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
        half = self.kernel_size // 2
        padded = functional.pad(compact(x, keep), (0, 0, half, half))
        out: Tensor = self.W_O(spread(_convolve(padded, self.W_C), keep))
        return out

    def packed_formula(self, x: Tensor, segments: Segments, is_causal: bool) -> Tensor:
        """The taps on the whole pack, 0 where one reaches beyond its own sequence."""
        half, lengths = self.kernel_size // 2, segments.lengths[segments.ids]
        padded, summed = functional.pad(x, (0, 0, half, half)), torch.zeros_like(x)
        for r in range(-half, 1 if is_causal else half + 1):
            place = segments.ranks + r
            inside = ((place >= 0) & (place < lengths)).unsqueeze(-1)
            neighbour = padded[:, half + r : half + r + x.shape[1]]
            summed = summed + self.W_C[half + r] * torch.where(inside, neighbour, 0.0)
        out: Tensor = self.W_O(summed)
        return out

    def causal_formula(self, x: Tensor) -> Tensor:
        return self._after(x, x.new_zeros(x.shape[0], self.kernel_size // 2, self.d_model))

    def stream(self, x: Tensor, state: ConvolutionState | None = None) -> tuple[Tensor, ConvolutionState]:
        """The next tokens of a stream: their outputs in causal order, and the state for those that follow."""
        check_piece("SeparableConvolution.stream", x, self.width, state, ConvolutionState)
        half = self.kernel_size // 2
        tail = x.new_zeros(x.shape[0], half, self.d_model) if state is None else state.tail
        return self._after(x, tail), ConvolutionState(torch.cat([tail, x], dim=1)[:, x.shape[1] :].clone())

    def _after(self, x: Tensor, tail: Tensor) -> Tensor:
        """The taps that do not look ahead, on x behind the tokens of `tail`."""
        taps = self.W_C[: self.kernel_size // 2 + 1]
        out: Tensor = self.W_O(_convolve(torch.cat([tail, x], dim=1), taps))
        return out

    def extra_repr(self) -> str:
        return f"ℝ^{{n×{self.d_model}}} → ℝ^{{n×{self.d_model}}}, window of {self.kernel_size}"


def _convolve(x: Tensor, taps: Tensor) -> Tensor:
    """Σ_r taps[r] ⊙ x_{i+r} for i < n, x (batch, n + len(taps) − 1, d): torch's conv1d is compiled anew for each n."""
    n = x.shape[1] - taps.shape[0] + 1
    out = taps[0] * x[:, :n]
    for r in range(1, taps.shape[0]):
        out = out + taps[r] * x[:, r : r + n]
    return out
