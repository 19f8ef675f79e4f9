"""φ(c) = Bᶜ ∈ ℤ, d' = 1: Σ is the number whose digit c in base B > n is how many tokens lie in cell c (A 2.13).

B = n + 1 is the base of the proof; B = 2ᵇ with b the bit length of n reads digits off as bits. The integers have
cells·log₂ B bits and are exact Python integers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sumformer.errors import InputError, NotSupportedError

Integers = NDArray[np.object_]


class IntegerCode:
    """Exact integers of any size, as arrays of Python integers (…, 1)."""

    latent_dimension = 1
    exact = False

    def __init__(self, cells: int, n: int, base: int) -> None:
        self.cells, self.n, self.base = cells, n, base
        self.bits = base.bit_length() - 1 if base & (base - 1) == 0 else 0
        self._squares = [base]  # B^(2^i)
        while 2 ** len(self._squares) < cells:
            self._squares.append(self._squares[-1] ** 2)

    def encode(self, c: Tensor) -> Integers:
        _refuse_tracing()
        flat = [self._power(int(k)) for k in c.reshape(-1).tolist()]
        return _objects(flat).reshape(*c.shape, 1)

    def sum(self, c: Tensor) -> Integers:
        _refuse_tracing()
        return _objects([sum(self._power(k) for k in row) for row in c.tolist()])[:, None]

    def decode(self, total: Integers, m: int) -> Tensor:
        digits = self._bit_digits if self.bits else self._digits
        rows = []
        for value in total[:, 0]:
            cells = [c for c, count in digits(value) for _ in range(count)]
            if len(cells) != m or cells[-1:] >= [self.cells]:
                raise InputError(f"decode: this Σ is not the code of {m} cells")
            rows.append(cells)
        return torch.tensor(rows, dtype=torch.int64).reshape(len(rows), m)

    def _power(self, c: int) -> int:
        return 1 << (self.bits * c) if self.bits else int(self.base**c)

    def _bit_digits(self, value: int) -> Iterator[tuple[int, int]]:
        """The digits that are not 0, from the lowest bit that is set to the next."""
        done = 0
        while value > 0:
            zeros = ((value & -value).bit_length() - 1) // self.bits
            value >>= self.bits * zeros
            done += zeros
            yield done, value & (self.base - 1)
            value >>= self.bits
            done += 1

    def _digits(self, value: int) -> Iterator[tuple[int, int]]:
        """The digits that are not 0, by halving the number of digits; what is 0 is not looked at further."""
        pending = [(value, len(self._squares), 0)]
        while pending:
            rest, level, start = pending.pop()
            if rest == 0:
                continue
            if level == 0:
                yield start, rest
                continue
            high, low = divmod(rest, self._squares[level - 1])
            pending += [(high, level - 1, start + 2 ** (level - 1)), (low, level - 1, start)]


def _refuse_tracing() -> None:
    if torch.compiler.is_compiling():
        raise NotSupportedError(
            "the code 'integer' counts in Python integers of any size, which a compiled or exported graph has not; "
            "build the same network with code 'lanes' or 'syndrome': float64, and the same values"
        )


def _objects(values: list[int]) -> Integers:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
