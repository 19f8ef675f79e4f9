"""A Sumformer that counts tokens cell by cell: the discontinuous proof of A 4.1, free of n.

φ(y)      = e_{q(y)} ∈ {0, 1}^K                          which of the K cells y lies in
Σ         = Σ_k φ(x_k) ∈ ℕ^K                             exact, and so are sums and differences of summaries
V_R(p)    = ⊕_j body_R(m_p, m_j, V(p))                   for each reduction R, m_j the centre of cell j, taken Σ_j times
ψ(x, Σ)   = the target around its reductions at x itself, with V_R(q(x)) for R

Tokens are looked at once; the reductions run over pairs of cells that occur, of which there are at most K² however many
tokens there are. Means, maxima and minima move no more than their bodies do, so the error is free of n too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from sumformer.errors import NotSupportedError, ShapeError
from sumformer.nn.cell_counts import CellCounts
from sumformer.nn.cell_grid import CellGrid
from sumformer.nn.inputs import check_tokens, keep_from_attention_mask, zero_padding
from sumformer.nn.network_operations import NetworkOperations
from sumformer.nn.program import Program
from sumformer.nn.segments import Segments, read_sequences
from sumformer.nn.summarising import SummarisingModule
from sumformer.nn.summary import Summary
from sumformer.targets import Node, Reduce, parse
from sumformer.targets import reductions as all_reductions

PAIRS = 2**18  # values of a body held at a time: what a CPU's cache holds
_ON_A_DEVICE = 2**25  # the same where every piece costs launches
BATCH_ELEMENTS = 2**24  # numbers of Σ of all sequences that are held at a time
TRACED = 2**11  # cells whose pairs a compiled graph writes out


class CellSumformer(CellGrid, SummarisingModule):
    """(batch, n, d) → (batch, n, width of the expression).

    config.json holds the arguments, `type` "CellSumformer":
      expression, d    the target, without sums where n is a symbol (they are means); the width of a token
      cells            [K_0, …, K_{d−1}], the number of cells along each coordinate
      arithmetic       "float64" or "mixed" (float32 in and out, float64 inside)
    model.safetensors holds `edges.c` and `centres.c`, as `CellGrid` says.
    Two errors:
      modulus     inside the reductions x and y are replaced by the centres of their cells; with r_c the largest
                  distance of a point of a cell to its centre, at most what f moves by when they move by r_c there
      rounding    in float64, operations of the tree as written, powers as products (at most k − 1 roundings deep). Each
                  value of a body is multiplied by its count (exact); the products, at most min(K, n) of them not 0, are
                  added in any order; a mean is divided by n, or n − 1; "mixed" rounds the result once more to float32
    """

    def __init__(self, expression: str, d: int, cells: Sequence[int], arithmetic: str) -> None:
        super().__init__(d, cells, arithmetic)
        self.expression = expression
        tree = parse(expression, d)
        self.width = tree.width
        self.parts = all_reductions(tree)
        places: dict[Reduce, int] = {part: i for i, part in enumerate(self.parts)}
        self._bodies = [Program(part.body, places) for part in self.parts]
        self._program = Program(tree, places)
        self.pairs = any(sees_own(part) for part in self.parts)

    @property
    def latent_dimension(self) -> int:
        return prod(self.cells)

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
        total = w.new_zeros(z.shape[0], self.latent_dimension)
        return Summary(total.scatter_add(1, self.quantise(z), w), w.sum(1))  # index_add races in onnxruntime

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
        """Every sequence has a Σ of its own: of a large batch some at a time."""
        some = max(1, BATCH_ELEMENTS // self.latent_dimension)
        if torch.compiler.is_compiling() or some >= x.shape[0]:
            return self._rows(x, keep)
        masks = [None] * x.shape[0] if keep is None else torch.split(keep, some)
        return torch.cat([self._rows(*pair) for pair in zip(torch.split(x, some), masks, strict=False)])

    def _rows(self, x: Tensor, keep: Tensor | None) -> Tensor:
        if keep is not None:  # padding is moved into the box; its count is 0, but that of a row of nothing else
            x = torch.where(keep.unsqueeze(-1), x, self.centre_of(torch.zeros_like(x[..., 0], dtype=torch.long)).to(x))
        seen = None if keep is None else keep | ~keep.any(-1, keepdim=True)
        return zero_padding(self.psi_of(x, self._summarise(x, None, seen)), keep)

    # ---- ψ

    def psi_of(self, x: Tensor, state: Summary) -> Tensor:
        """ψ(x_i, Σ) for queries x (batch, n, d), which need not be the sources but where a reduction is over others."""
        ops, inside = NetworkOperations(self.inside, x.device), x.to(self.inside)
        out = self._program.run(ops, inside, None, self._reduced(x, state))
        return out.expand(*x.shape[:2], self.width).to(self.outside)

    def reduced(self, x: Tensor, state: Summary) -> list[Tensor]:
        """What stands in ψ for each reduction of the expression, inner ones first: (batch, n or 1, its width)."""
        return self._reduced(x, state)

    def _reduced(self, x: Tensor, state: Summary) -> list[Tensor]:
        total = state.total.to(self.inside).expand(x.shape[0], -1)
        count = state.count.to(self.inside).expand(x.shape[0])
        if torch.compiler.is_compiling() and self.pairs and self.latent_dimension > TRACED:
            raise NotSupportedError(
                f"CellSumformer: a traced graph writes out all pairs of cells, of at most {TRACED}; "
                f"this network has {self.latent_dimension}: run it uncompiled, or construct with a larger ε"
            )
        sources = CellCounts.of(total)
        if not self.pairs:
            return self._tables(None, sources, count)
        cells = self.quantise(x)
        own = CellCounts.of(
            torch.zeros_like(total).scatter_add(1, cells, torch.ones_like(x[..., 0], dtype=self.inside))
        )
        place = own.find(cells)
        return [
            table.gather(1, place.unsqueeze(-1).expand(-1, -1, table.shape[2])) if table.shape[1] > 1 else table
            for table in self._tables(own.cells, sources, count)
        ]

    def _tables(self, own: Tensor | None, sources: CellCounts, count: Tensor) -> list[Tensor]:
        """V_R at the cells `own` (batch, P), for each reduction: (batch, P or 1, width)."""
        tables: list[Tensor] = []
        pieces = 1 if own is None else self._pieces(own, sources)
        for part, body in zip(self.parts, self._bodies, strict=True):
            if own is None or not sees_own(part):
                tables.append(self._values(part, body, None, sources, count, [t[:, :1] for t in tables]))
                continue
            rows = []
            for i, cells in enumerate(own.chunk(pieces, dim=1)):
                size = -(-own.shape[1] // pieces)
                known = [t[:, i * size : i * size + cells.shape[1]] if t.shape[1] > 1 else t for t in tables]
                rows.append(self._values(part, body, cells, sources, count, known))
            tables.append(torch.cat(rows, dim=1))
        return tables

    def _pieces(self, own: Tensor, sources: CellCounts) -> int:
        if torch.compiler.is_compiling():
            return 1
        width = max(max(part.width, self.d) for part in self.parts)
        most = PAIRS if own.device.type == "cpu" else _ON_A_DEVICE
        at_once = max(1, most // (width * max(1, sources.cells.numel())))
        return max(1, -(-own.shape[1] // at_once))

    def _values(
        self, part: Reduce, body: Program, own: Tensor | None, sources: CellCounts, count: Tensor, known: list[Tensor]
    ) -> Tensor:
        """⊕_j body(m_p, m_j, V(p)) for p in `own` (batch, P), `known` the V(p) of inner reductions."""
        ops = NetworkOperations(self.inside, count.device)
        x = None if own is None else self.centre_of(own).unsqueeze(2)
        values = body.run(ops, x, self.centre_of(sources.cells).unsqueeze(1), [v.unsqueeze(2) for v in known])
        often = sources.counts.unsqueeze(1)
        if part.kind.endswith("_others") and own is not None:
            often = often - (own.unsqueeze(2) == sources.cells.unsqueeze(1)).to(often)
            count = count - 1
        return _fold(part.kind, values.expand(*values.shape[:2], often.shape[2], part.width), often, count)

    def extra_repr(self) -> str:
        grid = "×".join(str(k) for k in self.cells)
        shape = f"ℝ^{{n×{self.d}}} → ℝ^{{n×{self.width}}}"
        return f"{shape}, {self.expression}, {grid} cells, d' = {self.latent_dimension}, {self.arithmetic}"


def sees_own(part: Reduce) -> bool:
    """Whether a reduction depends on the own token: by its body, by what it leaves out, or by an inner one."""
    if part.kind.endswith("_others"):
        return True
    stack: list[Node] = [part.body]
    while stack:
        node = stack.pop()
        if isinstance(node, Reduce):
            if sees_own(node):
                return True
        elif not node.children:
            if node.free == {"x"}:
                return True
        else:
            stack.extend(node.children)
    return False


def _fold(kind: str, values: Tensor, often: Tensor, count: Tensor) -> Tensor:
    """⊕ over the sources, the third dimension of values (batch, P, U, width), each `often` (batch, P or 1, U)."""
    there = (often > 0).unsqueeze(-1)
    if kind in ("max", "min"):
        worst = float("-inf") if kind == "max" else float("inf")
        values = torch.where(there, values, values.new_full((), worst))
        return values.amax(2) if kind == "max" else values.amin(2)
    total = (torch.where(there, values, 0.0) * often.unsqueeze(-1)).sum(2)
    return total / count[:, None, None] if kind.startswith("mean") else total
