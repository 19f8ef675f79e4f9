"""A 2.2: [head_1, …, head_h] W_O, where each head sees its own X W_Q, X W_K, X W_V."""

from __future__ import annotations

from abc import ABC

from torch import Tensor, nn

from sumformer.errors import InputError
from sumformer.nn.layer import Layer, check_positive


class MultiHead(Layer, ABC):
    """The four weights of `nhead` heads of size `d_head` (default d_model / nhead); no biases but the query's."""

    def __init__(self, d_model: int, nhead: int, d_head: int | None, query_bias: bool = False) -> None:
        super().__init__()
        self.d_model, self.nhead, self.query_bias = d_model, nhead, query_bias
        self.d_head = _head_size(type(self).__name__, d_model, nhead, d_head)
        self.width = d_model
        self.W_Q = nn.Linear(d_model, nhead * self.d_head, bias=query_bias)
        self.W_K = nn.Linear(d_model, nhead * self.d_head, bias=False)
        self.W_V = nn.Linear(d_model, nhead * self.d_head, bias=False)
        self.W_O = nn.Linear(nhead * self.d_head, d_model, bias=False)

    def queries(self, x: Tensor) -> Tensor:
        return self._split(self.W_Q(x))

    def keys(self, x: Tensor) -> Tensor:
        return self._split(self.W_K(x))

    def values(self, x: Tensor) -> Tensor:
        return self._split(self.W_V(x))

    def join(self, heads: Tensor, x: Tensor) -> Tensor:
        """[head_1, …, head_h] W_O in x's dtype: (batch, h, n, d_head) → (batch, n, d_model)."""
        out: Tensor = self.W_O(heads.transpose(1, 2).flatten(-2).to(x.dtype))
        return out

    def _split(self, x: Tensor) -> Tensor:
        """(batch, n, h·d_head) → (batch, h, n, d_head)."""
        return x.reshape(*x.shape[:2], self.nhead, self.d_head).transpose(1, 2)

    def extra_repr(self) -> str:
        return f"ℝ^{{n×{self.d_model}}} → ℝ^{{n×{self.d_model}}}, {self.nhead} heads of {self.d_head}"


def _head_size(where: str, d_model: int, nhead: int, d_head: int | None) -> int:
    check_positive(where, d_model=d_model, nhead=nhead, **({} if d_head is None else {"d_head": d_head}))
    if d_head is None and d_model % nhead:
        raise InputError(f"{where}: expected d_model divisible by nhead, got {d_model} and {nhead}; or give d_head")
    return d_model // nhead if d_head is None else d_head
