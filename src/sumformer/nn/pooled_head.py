"""PooledHead(X) = W pool(x_1, …, x_n) + b, pool the mean, sum or maximum: one output per set."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from sumformer.errors import InputError
from sumformer.nn.average_attention import mean_of_kept
from sumformer.nn.inputs import check_tokens, keep_from_key_padding_mask, zero_padding
from sumformer.nn.layer import check_positive
from sumformer.nn.pretrained import PretrainedModule


def _sum(x: Tensor, keep: Tensor | None) -> Tensor:
    return x.sum(1, dtype=torch.promote_types(x.dtype, torch.float32)).to(x.dtype)


def _max(x: Tensor, keep: Tensor | None) -> Tensor:
    return (x if keep is None else torch.where(keep.unsqueeze(-1), x, torch.finfo(x.dtype).min)).amax(1)


_POOLS: dict[str, Callable[[Tensor, Tensor | None], Tensor]] = {"mean": mean_of_kept, "sum": _sum, "max": _max}


class PooledHead(PretrainedModule):
    """(batch, n, d_model) → (batch, d_out). An empty (all-padding) set gives zeros."""

    def __init__(self, d_model: int, d_out: int, pool: str = "mean") -> None:
        super().__init__()
        check_positive("PooledHead", d_model=d_model, d_out=d_out)
        if pool not in _POOLS:
            raise InputError(f"PooledHead: expected pool to be one of {', '.join(_POOLS)}, got {pool!r}")
        self.d_model, self.d_out, self.pool = d_model, d_out, pool
        self.map = nn.Linear(d_model, d_out)

    @property
    def invariant(self) -> bool:
        return True

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        check_tokens("PooledHead", x, self.d_model)
        keep = keep_from_key_padding_mask("PooledHead", x, key_padding_mask)
        out: Tensor = self.map(_POOLS[self.pool](zero_padding(x, keep), keep))
        return out if keep is None else zero_padding(out, keep.any(-1))

    def extra_repr(self) -> str:
        return f"ℝ^{{n×{self.d_model}}} → ℝ^{self.d_out}, {self.pool}"
