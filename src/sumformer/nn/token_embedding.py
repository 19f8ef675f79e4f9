"""TokenEmbedding(t) = row t of a learned table: (batch, n) integers → (batch, n, d_model)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sumformer.errors import DtypeError, InputError, ShapeError
from sumformer.nn.inputs import keep_from_key_padding_mask, zero_padding
from sumformer.nn.layer import check_positive
from sumformer.nn.pretrained import PretrainedModule
from sumformer.nn.segments import Segments, segments_of


class TokenEmbedding(PretrainedModule):
    """`num_embeddings` tokens; padding may hold any number (−100, say) and becomes 0.

    Each token on its own: `is_causal` and a pack's `cu_seqlens` are taken, and change nothing.
    """

    def __init__(self, num_embeddings: int, d_model: int) -> None:
        super().__init__()
        check_positive("TokenEmbedding", num_embeddings=num_embeddings, d_model=d_model)
        self.num_embeddings, self.d_model = num_embeddings, d_model
        self.table = nn.Embedding(num_embeddings, d_model)

    def forward(
        self,
        x: Tensor,
        key_padding_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cu_seqlens: Tensor | Segments | None = None,
        max_seqlen: int | None = None,
    ) -> Tensor:
        self.check("TokenEmbedding", x)
        segments_of("TokenEmbedding", x, key_padding_mask, cu_seqlens, max_seqlen)
        keep = keep_from_key_padding_mask("TokenEmbedding", x, key_padding_mask)
        tokens = x if keep is None else torch.where(keep, x, 0)
        self._check_range(tokens)
        return zero_padding(self.table(tokens), keep)

    def stream(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """The next tokens of a stream: nothing is carried from one to another."""
        self.check("TokenEmbedding.stream", x)
        return self.forward(x), None

    def check(self, where: str, x: Tensor) -> Tensor:
        """x must be a (batch, n) tensor of int64 or int32 with n ≥ 1."""
        if not isinstance(x, Tensor):
            raise DtypeError(where, "a torch.Tensor of shape (batch, n)", type(x).__name__)
        if x.dim() != 2:
            raise ShapeError(where, "tokens of shape (batch, n)", x.shape)
        if x.shape[1] == 0:
            raise ShapeError(where, "tokens of shape (batch, n) with at least one token", x.shape)
        if x.dtype not in (torch.int64, torch.int32):
            raise DtypeError(where, "tokens of dtype int64 or int32", x.dtype)
        return x

    def _check_range(self, tokens: Tensor) -> None:
        # On an accelerator, and in compiled code, looking at the numbers would stall: there torch's own check serves.
        if torch.compiler.is_compiling() or tokens.device.type != "cpu" or tokens.numel() == 0:
            return
        low, high = (int(end) for end in tokens.aminmax())
        if low < 0 or high >= self.num_embeddings:
            raise InputError(
                f"TokenEmbedding: expected tokens in 0 … {self.num_embeddings - 1}, got values from {low} to {high}"
            )

    def extra_repr(self) -> str:
        return f"{{0 … {self.num_embeddings - 1}}}^n → ℝ^{{n×{self.d_model}}}"
