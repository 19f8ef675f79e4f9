"""The counts in base B > n, ⌊53/log₂ B⌋ whole digits to a float64 lane: d' = ⌈cells / ⌊53/log₂ B⌋⌉.

φ(c) = B^(c mod p) in lane ⌊c/p⌋. Every lane of Σ is an integer below 2⁵³, so the sum is exact in any order.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sumformer.errors import InputError
from sumformer.nn.codes.counting import expand

EXACT = 2**53


class LaneCode:
    """φ(c) ∈ ℝ^{d'}, one lane not 0."""

    exact = False

    def __init__(self, cells: int, n: int, base: int) -> None:
        if base > EXACT:
            raise InputError(f"LaneCode: expected n < 2^53, got n = {n}")
        self.cells, self.n, self.base = cells, n, base
        self.digits = 1
        while base ** (self.digits + 1) <= EXACT:
            self.digits += 1

    @property
    def latent_dimension(self) -> int:
        return -(-self.cells // self.digits)

    def encode(self, c: Tensor) -> Tensor:
        out = torch.zeros(*c.shape, self.latent_dimension, dtype=torch.float64, device=c.device)
        return out.scatter_(-1, (c // self.digits).unsqueeze(-1), self._value(c).unsqueeze(-1))

    def sum(self, c: Tensor) -> Tensor:
        out = torch.zeros(c.shape[0], self.latent_dimension, dtype=torch.float64, device=c.device)
        return out.scatter_add_(1, c // self.digits, self._value(c))

    def decode(self, total: Tensor, m: int) -> Tensor:
        if torch.compiler.is_compiling():
            counts = total.round().long().unsqueeze(-1) // self._powers(total.device) % self.base
            return expand(counts.flatten(1)[:, : self.cells], m)
        row, lane = total.nonzero(as_tuple=True)
        value = total[row, lane].round().long()
        counts = value[:, None].div(self._powers(total.device), rounding_mode="floor") % self.base
        place, digit = counts.nonzero(as_tuple=True)
        count = counts[place, digit]
        found = torch.zeros(len(total), dtype=torch.int64, device=total.device).index_add_(0, row[place], count)
        cells = torch.repeat_interleave(lane[place] * self.digits + digit, count)
        if not bool((found == m).all()) or bool((cells >= self.cells).any()):
            raise InputError(f"decode: this Σ is not the code of {m} cells")
        return cells.reshape(len(total), m)

    def _value(self, c: Tensor) -> Tensor:
        return self._powers(c.device).double()[c % self.digits]

    def _powers(self, device: torch.device) -> Tensor:
        return torch.tensor([self.base**k for k in range(self.digits)], dtype=torch.int64, device=device)
