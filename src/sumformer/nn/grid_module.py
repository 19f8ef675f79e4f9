"""A 4.1, discontinuous proof:  Σ = Σ_k φ(q(x_k)),  N(X)_i = g(x_i; centres of decode(Σ − φ(q(x_i)))).

q maps a token to the number of its cell, φ is a code of A 2.13. The own token is not quantised, so the error is that of
moving the other tokens to the centres of their cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor, nn

from sumformer.errors import InputError, NotSupportedError, ShapeError
from sumformer.nn.arithmetics import dtypes_of
from sumformer.nn.codes import Code, make_code
from sumformer.nn.pretrained import PretrainedModule
from sumformer.nn.segments import Segments, read_sequences

ROWS = 2**21  # numbers of Σ − φ(x_i), over the tokens worked on at a time


class GridModule(PretrainedModule, ABC):
    """(batch, n, d) → (batch, n, width); cells, code and tables as `GridSumformer` says, g by the subclass."""

    def __init__(self, d: int, n: int, cells: Sequence[int], code: str, arithmetic: str) -> None:
        super().__init__()
        if len(cells) != d or any(k < 1 for k in cells):
            raise InputError(f"{type(self).__name__}: expected {d} numbers of cells ≥ 1, got {list(cells)}")
        self.d, self.n, self.cells, self.code, self.arithmetic = d, n, list(cells), code, arithmetic
        self.inside, self.outside = dtypes_of(arithmetic, type(self).__name__)
        self._code: Code = make_code(code, prod(cells), n)
        self.edges = nn.ParameterList(nn.Parameter(torch.zeros(k - 1, dtype=torch.float64)) for k in cells)
        self.centres = nn.ParameterList(nn.Parameter(torch.zeros(k, dtype=self.inside)) for k in cells)

    @property
    def latent_dimension(self) -> int:
        """d', the number of coordinates of Σ."""
        return self._code.latent_dimension

    @property
    def exact_n(self) -> int | None:
        return self.n if self._code.exact else None

    @property
    def n_max(self) -> int:
        """The most tokens that Σ can count."""
        return self.n

    @abstractmethod
    def value(self, own: Tensor, others: Tensor) -> Tensor:
        """g(x; y_1, …, y_m) for own (rows, 1, d) and others (rows, m, d): (rows, width)."""

    def forward(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        *,
        cu_seqlens: Tensor | Segments | None = None,
        max_seqlen: int | None = None,
    ) -> Tensor:
        given = (x, attention_mask, cu_seqlens, max_seqlen)
        return read_sequences(type(self).__name__, self.d, given, self._read)

    def _read(self, x: Tensor, keep: Tensor | None) -> Tensor:
        if keep is None:
            return self._rows(x)
        if torch.compiler.is_compiling():
            where = type(self).__name__
            raise NotSupportedError(f"{where}: a traced graph cannot sort rows by their padding; trace it unmasked")
        out = torch.zeros(*x.shape[:2], self.width, dtype=self.outside, device=x.device)
        counts = keep.sum(1)
        for count in sorted(set(counts.tolist()) - {0}):  # rows with equally many tokens, without their padding
            rows = (counts == count).nonzero()[:, 0]
            at = (rows[:, None].expand(-1, count), keep[rows].nonzero()[:, 1].reshape(-1, count))
            out = out.index_put(at, self._rows(x[at]))
        return out

    width: int

    def _rows(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.n:
            raise ShapeError(type(self).__name__, f"at most n = {self.n} tokens, as its code counts", x.shape)
        if torch.compiler.is_compiling():
            return self._chunk(x)
        if not x.shape[0]:
            return torch.zeros(*x.shape[:2], self.width, dtype=self.outside, device=x.device)
        size = max(1, ROWS // (x.shape[1] * max(1, self.latent_dimension)))
        return torch.cat([self._chunk(piece) for piece in torch.split(x, size)])

    def _chunk(self, x: Tensor) -> Tensor:
        """Σ − φ(x_i) for every token i, decoded; then g."""
        batch, n = x.shape[:2]
        cells = self.quantise(x)
        total = self._code.sum(cells)[:, None] - self._code.encode(cells)  # (batch, n, d')
        others = self.centre_of(self._code.decode(total.reshape(batch * n, -1), n - 1).to(x.device))
        own = x.to(self.inside).reshape(batch * n, 1, self.d)
        return self.value(own, others).reshape(batch, n, self.width).to(self.outside)

    def quantise(self, x: Tensor) -> Tensor:
        """q(x): (…, d) → (…), the cell's number; per coordinate, how many edges are ≤ x_c, exactly compared."""
        number = torch.zeros(x.shape[:-1], dtype=torch.int64, device=x.device)
        for c, count in enumerate(self.cells):
            number = number * count + _count_below(self.edges[c].detach(), x[..., c].detach().double().contiguous())
        return number

    def centre_of(self, number: Tensor) -> Tensor:
        """(…) → (…, d), the centre of the cell with that number."""
        columns: list[Tensor] = []
        for c in reversed(range(self.d)):
            columns.insert(0, self.centres[c][number % self.cells[c]])
            number = number // self.cells[c]
        return torch.stack(columns, dim=-1)


def _count_below(edges: Tensor, x: Tensor) -> Tensor:
    """#{e ∈ edges : e ≤ x}; ONNX has no search, so a traced graph compares them all."""
    if torch.compiler.is_compiling():
        # a product counts as a sum does, and onnxruntime knows its shape where the batch is empty
        below = (edges <= x.unsqueeze(-1)).to(edges.dtype) @ torch.ones_like(edges).unsqueeze(-1)
        return below.squeeze(-1).long() if edges.shape[0] else torch.zeros_like(x, dtype=torch.int64)
    return torch.searchsorted(edges, x, right=True)
