"""V_R(p) = ⊕_j body_R(m_p, m_j, V(p)) over cells j, each as often as it has tokens, for reductions R of one family.

They read the same coordinates: j runs over a grid of those that they see of y, p over a grid of those of their own x.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sumformer.nn.cell_counts import CellCounts
from sumformer.nn.network_operations import NetworkOperations
from sumformer.nn.program import Program
from sumformer.targets import Reduce, reductions
from sumformer.targets.coordinatewise import Family, read

PAIRS = 2**18  # values of a body held at a time: what a CPU's cache holds
_ON_A_DEVICE = 2**25  # the same where every piece costs launches


@dataclass(frozen=True)
class Sources:
    """The cells in which tokens are, and how many; of all tokens how many; the centres (batch, U, d) of these cells."""

    occupied: CellCounts
    count: Tensor
    centres: Tensor


@dataclass(frozen=True)
class Own:
    """Centres (batch, P, d) of the cells of own tokens; the source cells (batch, P) of which one token is left out."""

    centres: Tensor
    left_out: Tensor | None


class CellReductions:
    """The reductions of a family, inner ones first."""

    def __init__(self, family: Family, d: int, dtype: torch.dtype) -> None:
        self.parts, self.seen, self.own, self.dtype = family.parts, family.seen, family.own, dtype
        self.pairs = bool(self.own)
        self.others = any(part.kind.endswith("_others") for part in self.parts)
        self._apart = [sees_own(part) for part in self.parts]
        self._widest = max(d, *(part.width for part in self.parts))
        places: dict[Reduce, int] = {part: i for i, part in enumerate(self.parts)}
        self._bodies = [Program(part.body, places) for part in self.parts]

    def tables(self, own: Own | None, sources: Sources) -> list[Tensor]:
        """V_R at the own cells, for each reduction: (batch, P or 1, width)."""
        tables: list[Tensor] = []
        for part, body, apart in zip(self.parts, self._bodies, self._apart, strict=True):
            if own is None or not apart:
                tables.append(self._values(part, body, None, sources, [t[:, :1] for t in tables]))
                continue
            rows = []
            for piece in self._pieces(own, sources.occupied):
                some = Own(own.centres[:, piece], None if own.left_out is None else own.left_out[:, piece])
                known = [t[:, piece] if t.shape[1] > 1 else t for t in tables]
                rows.append(self._values(part, body, some, sources, known))
            tables.append(torch.cat(rows, dim=1))
        return tables

    def _pieces(self, own: Own, occupied: CellCounts) -> list[slice]:
        """Own cells by so many at a time that a cache holds their pairs."""
        if torch.compiler.is_compiling():
            return [slice(None)]
        most = PAIRS if own.centres.device.type == "cpu" else _ON_A_DEVICE
        size = max(1, most // (self._widest * max(1, occupied.cells.numel())))
        return [slice(start, start + size) for start in range(0, own.centres.shape[1], size)]

    def _values(self, part: Reduce, body: Program, own: Own | None, sources: Sources, known: list[Tensor]) -> Tensor:
        """⊕_j body(m_p, m_j, V(p)) for p in `own`, `known` the V(p) of inner reductions."""
        cells, count = sources.occupied, sources.count
        ops = NetworkOperations(self.dtype, count.device)
        x = None if own is None else own.centres.unsqueeze(2)
        values = body.run(ops, x, sources.centres.unsqueeze(1), [v.unsqueeze(2) for v in known])
        often = cells.counts.unsqueeze(1)
        if part.kind.endswith("_others") and own is not None and own.left_out is not None:
            often = often - (own.left_out.unsqueeze(2) == cells.cells.unsqueeze(1)).to(often)
            count = count - 1
        return _fold(part.kind, values.expand(*values.shape[:2], often.shape[2], part.width), often, count)


def sees_own(part: Reduce) -> bool:
    """Whether a reduction depends on the own token: by its body, by what it leaves out, or by an inner one."""
    others = any(inner.kind.endswith("_others") for inner in (part, *reductions(part.body)))
    return others or bool(read(part.body, "x"))


def _fold(kind: str, values: Tensor, often: Tensor, count: Tensor) -> Tensor:
    """⊕ over the sources, the third dimension of values (batch, P, U, width), each `often` (batch, P or 1, U)."""
    there = (often > 0).unsqueeze(-1)
    if kind in ("max", "min"):
        worst = float("-inf") if kind == "max" else float("inf")
        values = torch.where(there, values, values.new_full((), worst))
        return values.amax(2) if kind == "max" else values.amin(2)
    total = (torch.where(there, values, 0.0) * often.unsqueeze(-1)).sum(2)
    return total / count[:, None, None] if kind.startswith("mean") else total
