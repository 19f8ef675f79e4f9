"""The bound of a plan by origin, the worst over the numbers of tokens, which are taken in pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sumformer.algebra.interval import Interval
from sumformer.targets import Reduce
from sumformer.targets.domain import Tokens
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.decomposition import Decomposition
from sumformer.theorems.alberti_2023.error_bound import ErrorBound
from sumformer.theorems.alberti_2023.kernel_errors import Switches
from sumformer.theorems.alberti_2023.mesh_plan import MeshPlan
from sumformer.theorems.alberti_2023.plan import Plan
from sumformer.theorems.alberti_2023.ranges import reduction_ranges
from sumformer.theorems.alberti_2023.sketch import Sketch


@dataclass(frozen=True)
class Split:
    """The bound by origin: interpolation remainder, dropped coefficients, rounding."""

    remainder: float
    dropped: float
    rounding: float

    @property
    def total(self) -> float:
        return self.remainder + self.dropped + self.rounding


@dataclass(frozen=True)
class TokenPiece:
    """Some of the token counts, and where the reductions lie for them."""

    tokens: Tokens
    ranges: Mapping[Reduce, Interval]
    own_token: bool = False


def token_pieces(
    decomposition: Decomposition, cells: Cells, tokens: Tokens, own_token: bool = False
) -> list[TokenPiece]:
    """The token counts in pieces [m, 2m], where the target has true sums: a sum's size and its error grow together."""
    expression = decomposition.expression
    counts = [tokens]
    if any(s.reduction.kind in ("sum", "sum_others") for s in decomposition.sums):
        counts, low = [], tokens.minimum
        while low <= tokens.maximum:
            high = min(2 * low, tokens.maximum)
            counts.append(Tokens(low, high))
            low = high + 1
    return [TokenPiece(piece, reduction_ranges(expression, cells, piece, own_token), own_token) for piece in counts]


def measure(plan: Plan | MeshPlan, arithmetic: Arithmetic, cells: Cells, pieces: Sequence[TokenPiece]) -> Split:
    """The bound and its parts; the parts add up to the bound."""
    total = bound(plan, arithmetic, cells, pieces, Switches())
    if not plan.kernels:
        return Split(0.0, 0.0, total)
    remainder = bound(plan, arithmetic, cells, pieces, Switches(dropped=False, rounding=False))
    approximation = max(bound(plan, arithmetic, cells, pieces, Switches(rounding=False)), remainder)
    total = max(total, approximation)
    return Split(remainder, approximation - remainder, total - approximation)


def bound(
    plan: Plan | MeshPlan | Sketch,
    arithmetic: Arithmetic,
    cells: Cells,
    pieces: Sequence[TokenPiece],
    switches: Switches,
) -> float:
    """What is counted, at its largest."""
    return max(ErrorBound(plan, arithmetic, p.tokens, cells, switches, p.ranges, p.own_token).total() for p in pieces)
