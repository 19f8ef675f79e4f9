"""φ(c) = (c, c², …, cⁿ⁻¹) mod q with a prime q ≥ max(cells, n + 1): d' = n − 1, however many cells there are.

The own token is known, so n − 1 power sums of the n − 1 others determine them: Newton's identities
  k e_k = Σ_{i=1}^{k} (−1)^{i−1} e_{k−i} p_i   mod q
give Π_j (z − c_j), whose roots are found by evaluating it at every cell. Every coordinate of Σ is an integer below
n·q < 2⁵³, so the sum is exact in any order.
"""

from __future__ import annotations

from math import comb, isqrt

import torch
from torch import Tensor

from sumformer.errors import InputError
from sumformer.nn.codes.counting import expand

EXACT = 2**53
SCAN = 2**20  # values of polynomials held at a time


class SyndromeCode:
    """φ(c) ∈ {0, …, q − 1}^{n−1}; `decode` takes the Σ of m ≤ n − 1 tokens, the own one removed."""

    exact = True

    def __init__(self, cells: int, n: int) -> None:
        self.cells, self.n = cells, n
        self.q = _prime(max(cells, n + 1))
        if n * self.q**2 >= EXACT:
            raise InputError(f"SyndromeCode: {cells} cells with n = {n} do not fit float64 (n·q² < 2^53)")

    @staticmethod
    def dimension(n: int) -> int:
        return n - 1

    @property
    def latent_dimension(self) -> int:
        return self.dimension(self.n)

    def encode(self, c: Tensor) -> Tensor:
        return self._powers(c, self.n - 1)[..., 1:].double()

    def sum(self, c: Tensor) -> Tensor:
        return self.encode(c).sum(1)

    def decode(self, total: Tensor, m: int) -> Tensor:
        if m > self.n - 1:
            raise InputError(f"decode: {self.n - 1} power sums determine {self.n - 1} cells, not {m}")
        coefficients = self._polynomial(total.round().long() % self.q, m)
        table = self._powers(torch.arange(self.cells, device=total.device), m).double().T.contiguous()
        if torch.compiler.is_compiling():
            return expand(self._multiplicities(coefficients, table, m), m)
        size = max(1, SCAN // self.cells)
        pieces = [self._roots(piece, table, m) for piece in torch.split(coefficients, size)]
        return torch.cat(pieces) if pieces else coefficients[:, :m]

    def _powers(self, c: Tensor, degree: int) -> Tensor:
        """(1, c, …, c^degree) mod q."""
        rows = [torch.ones_like(c)]
        for _ in range(degree):
            rows.append(rows[-1] * c % self.q)
        return torch.stack(rows, dim=-1)

    def _polynomial(self, p: Tensor, m: int) -> Tensor:
        """The coefficients of Π_j (z − c_j), z^0 first, mod q: (rows, m + 1)."""
        e = [torch.ones_like(p[:, 0]) if m else p.new_ones(p.shape[0])]
        for k in range(1, m + 1):
            signed = [(1 if i % 2 else -1) * (e[k - i] * p[:, i - 1] % self.q) for i in range(1, k + 1)]
            e.append(torch.stack(signed).sum(0) * pow(k, -1, self.q) % self.q)
        return torch.stack([(1 if (m - k) % 2 == 0 else -1) * e[m - k] % self.q for k in range(m + 1)], dim=-1)

    def _roots(self, coefficients: Tensor, table: Tensor, m: int) -> Tensor:
        """(rows, m + 1) → the m roots among the cells, ascending, each as often as it counts."""
        values = coefficients.double() @ table  # integers below (m + 1) q² < 2^53: exact
        # q divides v iff q·round(v/q) = v: the quotient is below 2^53/q, so its rounding errors are far below ½
        row, cell = ((values * (1 / self.q)).round_().mul_(self.q) == values).nonzero(as_tuple=True)
        rows = len(coefficients)
        distinct = torch.bincount(row, minlength=rows)
        if bool((distinct == m).all()):
            return cell.reshape(rows, m)
        count = self._multiplicity(coefficients[row], cell, m)
        found = torch.zeros(rows, dtype=torch.int64, device=row.device).index_add_(0, row, count)
        if not bool((found == m).all()):
            raise InputError(f"decode: this Σ is not the code of {m} cells")
        return torch.repeat_interleave(cell, count).reshape(rows, m)

    def _multiplicities(self, coefficients: Tensor, table: Tensor, m: int) -> Tensor:
        """(rows, m + 1) → (rows, cells), with no size that depends on the numbers.

        (z − c)ᵏ divides P iff Σ_i C(i, l) a_i c^{i−l} ≡ 0 for all l < k (Hasse's derivatives, in any characteristic).
        """
        alive = torch.ones(coefficients.shape[0], self.cells, dtype=torch.bool, device=coefficients.device)
        count = torch.zeros_like(alive, dtype=torch.int64)
        for l in range(m):  # noqa: E741
            binomials = torch.tensor([comb(i, l) % self.q for i in range(l, m + 1)], device=coefficients.device)
            derivative = coefficients[:, l:] * binomials % self.q
            values = derivative.double() @ table[: m + 1 - l]  # integers below (m + 1) q² < 2^53: exact
            alive = alive & ((values * (1 / self.q)).round() * self.q == values)
            count = count + alive
        return count

    def _multiplicity(self, coefficients: Tensor, root: Tensor, m: int) -> Tensor:
        """How often z − root divides each polynomial: Horner's quotient, again and again while it vanishes."""
        count = torch.zeros_like(root)
        alive = torch.ones_like(root, dtype=torch.bool)
        quotient = coefficients
        for degree in range(m, 0, -1):
            columns = [quotient[:, degree]]
            for k in range(degree - 1, -1, -1):
                columns.append((columns[-1] * root + quotient[:, k]) % self.q)
            alive = alive & (columns[-1] == 0)
            count = count + alive
            quotient = torch.stack(columns[-2::-1], dim=-1)
        return count


def _prime(least: int) -> int:
    """The smallest prime ≥ least."""
    q = max(2, least)
    while any(q % k == 0 for k in range(2, isqrt(q) + 1)):
        q += 1
    return q
