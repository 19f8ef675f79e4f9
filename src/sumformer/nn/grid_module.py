"""A 4.1, discontinuous proof:  Σ = Σ_k φ(q(x_k)),  N(X)_i = g(x_i; centres of decode(Σ − φ(q(x_i)))).

q maps a token to the number of its cell, φ is a code of A 2.13. The own token is not quantised, so the error is that of
moving the other tokens to the centres of their cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from sumformer.errors import NotSupportedError, ShapeError
from sumformer.nn.cell_grid import CellGrid
from sumformer.nn.codes import Code, make_code

ROWS = 2**21  # numbers of Σ − φ(x_i), over the tokens worked on at a time


class GridModule(CellGrid, ABC):
    """(batch, n, d) → (batch, n, width); cells, code and tables as `GridSumformer` says, g by the subclass."""

    def __init__(self, d: int, n: int, cells: Sequence[int], code: str, arithmetic: str) -> None:
        super().__init__(d, cells, arithmetic)
        self.n, self.code = n, code
        self._code: Code = make_code(code, prod(cells), n)

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
