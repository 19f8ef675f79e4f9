"""X ↦ X + p(r), r = 0, 1, … the rank of each token among the real ones.

IndexPositions        p(r) = stride · r · (1, …, 1)                         the papers' additive index
SinusoidalPositions   p(r)_{2i} = sin(r / base^{2i/d}),  p(r)_{2i+1} = cos(r / base^{2i/d})
LearnedPositions      p(r) = row r of a learned table
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from sumformer.errors import ShapeError
from sumformer.nn.inputs import check_piece
from sumformer.nn.layer import TokenWise, check_positive
from sumformer.nn.segments import Segments
from sumformer.nn.token_order import check_fits, check_lengths, ranks


class Positions(TokenWise, ABC):
    """X ↦ X + p(r). In a pack r is the place in the token's own sequence."""

    @property
    def equivariant(self) -> bool:
        return False

    @abstractmethod
    def p(self, r: Tensor, dtype: torch.dtype) -> Tensor:
        """Ranks r (…) → (…, d) or (…, 1), in `dtype`."""

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        return x + self.p(ranks(x, keep), x.dtype)

    def packed_formula(self, x: Tensor, segments: Segments, is_causal: bool) -> Tensor:
        return x + self.p(segments.ranks, x.dtype)

    def stream(self, x: Tensor, state: int | None = None) -> tuple[Tensor, int]:
        """The next tokens of a stream, counted on from `state`, the number of tokens before them."""
        check_piece(f"{type(self).__name__}.stream", x, self.width, state, int)
        first = 0 if state is None else state
        r = torch.arange(first, first + x.shape[1], device=x.device)
        return x + self.p(r, x.dtype), first + x.shape[1]


class IndexPositions(Positions):
    """p(r) = stride · r in every coordinate: with stride 1, tokens of [0, 1]^d go to disjoint boxes [r, r + 1]^d."""

    def __init__(self, stride: float = 1.0) -> None:
        super().__init__()
        self.stride = stride

    def p(self, r: Tensor, dtype: torch.dtype) -> Tensor:
        return (self.stride * r.to(_wide(dtype))).unsqueeze(-1).to(dtype)

    def extra_repr(self) -> str:
        return f"x_r + {self.stride}·r"


class SinusoidalPositions(Positions):
    """p(r)_{2i} = sin(r / base^{2i/d}), p(r)_{2i+1} = cos(r / base^{2i/d}) (Vaswani et al. 2017), any length."""

    def __init__(self, d_model: int, base: float = 10000.0) -> None:
        super().__init__()
        check_positive("SinusoidalPositions", d_model=d_model)
        self.d_model, self.base = d_model, base
        self.width = d_model

    def p(self, r: Tensor, dtype: torch.dtype) -> Tensor:
        even = torch.arange(0, self.d_model, 2, device=r.device, dtype=_wide(dtype))
        frequency = self.base ** (-even / self.d_model)
        angle = r.to(_wide(dtype)).unsqueeze(-1) * frequency
        waves = torch.stack((angle.sin(), angle.cos()), -1).flatten(-2)
        return waves[..., : self.d_model].to(dtype)

    def extra_repr(self) -> str:
        return f"ℝ^{{n×{self.d_model}}} → ℝ^{{n×{self.d_model}}}, base {self.base}"


class LearnedPositions(Positions):
    """p(r) = table[r] for up to `n_max` real tokens, drawn from N(0, std²)."""

    def __init__(self, n_max: int, d_model: int, std: float = 0.02) -> None:
        super().__init__()
        check_positive("LearnedPositions", n_max=n_max, d_model=d_model)
        self.n_max, self.d_model, self.std = n_max, d_model, std
        self.width = d_model
        self.table = nn.Parameter(torch.randn(n_max, d_model) * std)

    def formula(self, x: Tensor, keep: Tensor | None) -> Tensor:
        check_fits("LearnedPositions", x, keep, self.n_max)
        return super().formula(x, keep)

    def packed_formula(self, x: Tensor, segments: Segments, is_causal: bool) -> Tensor:
        check_lengths("LearnedPositions", segments.lengths, self.n_max, x.shape)
        return super().packed_formula(x, segments, is_causal)

    def stream(self, x: Tensor, state: int | None = None) -> tuple[Tensor, int]:
        piece = check_piece("LearnedPositions.stream", x, self.width, state, int)
        count = (0 if state is None else state) + piece.shape[1]
        if count > self.n_max:
            raise ShapeError("LearnedPositions.stream", f"at most n_max = {self.n_max} tokens", f"{count} by now")
        return super().stream(x, state)

    def p(self, r: Tensor, dtype: torch.dtype) -> Tensor:
        return self.table[r]

    def extra_repr(self) -> str:
        return f"ℝ^{{n×{self.d_model}}} → ℝ^{{n×{self.d_model}}}, n ≤ {self.n_max}"


def _wide(dtype: torch.dtype) -> torch.dtype:
    """Ranks past 256 are not exact in bfloat16: positions are computed in float32 or wider."""
    return torch.promote_types(dtype, torch.float32)
