"""A Sumformer that counts tokens cell by cell: the discontinuous proof of A 4.1, free of n.

φ(y)      = (e_{q_S(y)})_S, one-hot             which cell y lies in, of a grid over each set S of coordinates seen
Σ         = Σ_k φ(x_k) ∈ ℕ^d'                   exact, and so are sums and differences of summaries
V_R(p)    = ⊕_j body_R(m_p, m_j, V(p))          for a reduction R that sees S, m_j the centre of cell j, Σ_{S,j} times
ψ(x, Σ)   = the target around its reductions at x itself, with V_R(p) for R, p the cell of x

What reductions do not read costs nothing: max(y) ∈ ℝ^d needs d tables of K cells, not one of K^d, and a table for
max(y_1 − |x_0 − y_0|) is evaluated at cells of x_0 alone. Tokens are looked at once; the reductions run over pairs of
cells that occur, of which there are no more however many tokens there are. Means, maxima and minima move no more than
their bodies do, so the error is free of n too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from sumformer.errors import InputError, NotSupportedError, ShapeError
from sumformer.nn.cell_counts import CellCounts
from sumformer.nn.cell_grid import CellGrid
from sumformer.nn.cell_reductions import CellReductions, Own, Sources
from sumformer.nn.inputs import check_tokens, keep_from_attention_mask, zero_padding
from sumformer.nn.network_operations import NetworkOperations
from sumformer.nn.program import Program
from sumformer.nn.summarising import SummarisingModule
from sumformer.nn.summary import Summary
from sumformer.targets import parse
from sumformer.targets.coordinatewise import coordinatewise, families

BATCH_ELEMENTS = 2**24  # numbers of Σ of all sequences that are held at a time
MOST_OWN = 2**62  # cells of own tokens: their numbers are int64
TRACED = 2**22  # pairs of cells that a compiled graph writes out; where there are more, pairs of a token and a cell
TRACED_CELLS = 2**16  # of those pairs, for each token


class CellSumformer(CellGrid, SummarisingModule):
    """(batch, n, d) → (batch, n, width of the expression).

    config.json holds the arguments, `type` "CellSumformer":
      expression, d    the target, its sums as means where n cancels; the width of a token
      cells            [K_0, …, K_{d−1}], the number of cells along each coordinate
      arithmetic       "float64" or "mixed" (float32 in and out, float64 inside)
    model.safetensors holds `edges.c` and `centres.c`, as `CellGrid` says.
    Two errors:
      modulus     inside the reductions x and y are replaced by the centres of their cells; with r_c the largest
                  distance of a point of a cell to its centre, at most what f moves by when they move by r_c there
      rounding    in float64, operations of the tree as written, powers as products (at most k − 1 roundings deep). Each
                  value of a body is multiplied by its count, a whole number, and rounded; the products, at most
                  min(d', n) of them not 0, are added in any order; a mean is divided by n, or n − 1; "mixed" rounds
                  the result once more to float32
    """

    def __init__(self, expression: str, d: int, cells: Sequence[int], arithmetic: str) -> None:
        super().__init__(d, cells, arithmetic)
        self.expression = expression
        self.tree = coordinatewise(parse(expression, d))
        self.width = self.tree.width
        self.families = tuple(CellReductions(family, d, self.inside) for family in families(self.tree))
        self.parts = tuple(part for family in self.families for part in family.parts)
        self.tables = {family.seen: self._cells_of(family.seen) for family in self.families}
        self._own_cells = [self._cells_of(family.own) for family in self.families]
        if max(self._own_cells, default=1) > MOST_OWN:
            raise InputError(f"CellSumformer: expected at most 2^62 cells of own tokens, got {max(self._own_cells)}")
        counted = [size for size in self._own_cells if size <= BATCH_ELEMENTS]
        self._largest = max([1, sum(self.tables.values()), *counted])  # numbers of a sequence
        self._program = Program(self.tree, {part: i for i, part in enumerate(self.parts)})

    @property
    def latent_dimension(self) -> int:
        return sum(self.tables.values())

    def _cells_of(self, coordinates: Sequence[int]) -> int:
        return prod(self.cells[c] for c in coordinates)

    # ---- φ and Σ

    def summarise(self, z: Tensor, weights: Tensor | None = None, attention_mask: Tensor | None = None) -> Summary:
        """Σ over sources z (batch, m, d), each counted `weights` ≥ 0 times."""
        check_tokens("CellSumformer.summarise", z, self.d)
        keep = keep_from_attention_mask("CellSumformer.summarise", z, attention_mask)
        if weights is not None and weights.shape != z.shape[:2]:
            raise ShapeError("CellSumformer.summarise", f"weights of shape {tuple(z.shape[:2])}", weights.shape)
        return self._summarise(z, weights, keep)

    def _summarise(self, z: Tensor, weights: Tensor | None, keep: Tensor | None) -> Summary:
        w = z.new_ones(z.shape[:2], dtype=self.inside) if weights is None else weights.to(self.inside)
        w = w if keep is None else torch.where(keep, w, torch.zeros((), dtype=self.inside, device=w.device))
        tables = [
            w.new_zeros(z.shape[0], size).scatter_add(1, self.quantise(z, seen), w)
            for seen, size in self.tables.items()  # index_add races in onnxruntime
        ]
        return Summary(torch.cat(tables, dim=1) if tables else w[:, :0], w.sum(1))

    def _read(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """Every sequence has a Σ of its own: of a large batch some at a time."""
        some = max(1, BATCH_ELEMENTS // self._largest)
        if torch.compiler.is_compiling() or some >= x.shape[0]:
            return self._rows(x, keep)
        masks = [None] * x.shape[0] if keep is None else torch.split(keep, some)
        return torch.cat([self._rows(*pair) for pair in zip(torch.split(x, some), masks, strict=False)])

    def _rows(self, x: Tensor, keep: Tensor | None) -> Tensor:
        if keep is not None:  # padding is moved into the box; its count is 0, but that of a row of nothing else
            x = torch.where(keep.unsqueeze(-1), x, torch.stack([m[0] for m in self.centres]).to(x))
        seen = None if keep is None else keep | ~keep.any(-1, keepdim=True)
        return zero_padding(self.psi_of(x, self._summarise(x, None, seen)), keep)

    # ---- ψ

    def psi_of(self, x: Tensor, state: Summary) -> Tensor:
        """ψ(x_i, Σ) for queries x (batch, n, d), which need not be the sources but where a reduction is over others."""
        ops, inside = NetworkOperations(self.inside, x.device), x.to(self.inside)
        out = self._program.run(ops, inside, None, self.reduced(x, state))
        return out.expand(*x.shape[:2], self.width).to(self.outside)

    def reduced(self, x: Tensor, state: Summary) -> list[Tensor]:
        """What stands in ψ for each of `parts`: (batch, n or 1, its width)."""
        total = state.total.to(self.inside).expand(x.shape[0], -1)
        count = state.count.to(self.inside).expand(x.shape[0])
        counts = dict(zip(self.tables, torch.split(total, list(self.tables.values()), dim=1), strict=True))
        out: list[Tensor] = []
        for family, size in zip(self.families, self._own_cells, strict=True):
            cells = CellCounts.of(counts[family.seen])
            sources = Sources(cells, count, self.centre_of(cells.cells, family.seen))
            if not family.pairs:
                out += family.tables(None, sources)
            elif self._by_tokens(size, counts[family.seen].shape[1]):
                out += family.tables(self._own(family, self.quantise(x, family.own)), sources)
            else:
                out += self._at_cells(family, size, x, sources)
        return out

    def _at_cells(self, family: CellReductions, size: int, x: Tensor, sources: Sources) -> list[Tensor]:
        """V_R at the own cells that occur, and from there to the tokens that lie in them."""
        number = self.quantise(x, family.own)
        once = torch.ones_like(x[..., 0], dtype=self.inside)
        occupied = CellCounts.of(once.new_zeros(x.shape[0], size).scatter_add(1, number, once))
        place = occupied.find(number)
        return [
            table.gather(1, place.unsqueeze(-1).expand(-1, -1, table.shape[2])) if table.shape[1] > 1 else table
            for table in family.tables(self._own(family, occupied.cells), sources)
        ]

    def _own(self, family: CellReductions, number: Tensor) -> Own:
        left_out = self.shared(number, family.own, family.seen) if family.others else None
        return Own(self.centre_of(number, family.own), left_out)

    def _by_tokens(self, own: int, seen: int) -> bool:
        """Whether V_R is taken at every token: own cells are too many to count in, or a traced graph to write out.

        Such a graph does not know which cells occur.
        """
        if not torch.compiler.is_compiling():
            return own > BATCH_ELEMENTS
        if own * seen <= TRACED:
            return False
        if seen > TRACED_CELLS:
            raise NotSupportedError(
                f"CellSumformer: a traced graph writes out up to {TRACED} pairs of cells, or {TRACED_CELLS} cells for "
                f"each token; this network has {own} × {seen}: run it uncompiled, or construct with a larger ε"
            )
        return True

    def extra_repr(self) -> str:
        grid = "×".join(str(k) for k in self.cells)
        shape = f"ℝ^{{n×{self.d}}} → ℝ^{{n×{self.width}}}"
        return f"{shape}, {self.expression}, {grid} cells, d' = {self.latent_dimension}, {self.arithmetic}"
