"""S Lemma 3: a contextual mapping with sparse attention, p(n−1)/δ^d + s layers for a pattern of p steps and reach s.

E_{γ(1)} = n−1, E_{γ(i)} = i−2 for i ≥ 2 along the path γ. For i = 2 … n and each of the δ^{−d} ids l of γ(i):
Z_k ↦ Z_k + δ^{−d} (max − min over A_k^t of uᵀZ)  where uᵀZ_k = l,   at a step t with γ(i−1) ∈ A_{γ(i)}^t; others idle
Z_k ↦ Z_k + c max_{A_k^t} uᵀZ,   c = 2snδ^{−nd−1},   s times: every token hears of the last one
"""

from __future__ import annotations

from sumformer.errors import RefusedError
from sumformer.nn.patterns.assumption import AssumptionReport
from sumformer.nn.patterns.pattern import Pattern
from sumformer.theorems.yun_2020_deep.grid import Grid
from sumformer.theorems.yun_2020_deep.magnitude import Magnitude
from sumformer.theorems.yun_2020_deep.shift_layers import ShiftLayers, shift_layers


def assumption(pattern: Pattern, n: int) -> AssumptionReport:
    """γ and s, or a refusal that names the clause of Assumption 1 that fails."""
    report = pattern.assumption(n)
    if not report.holds:
        fails = "does not meet" if report.violated else "was not shown to meet"
        raise RefusedError(f"{pattern} {fails} Assumption 1 for n = {n}", report.reasons)
    return report


def sparse_grid(pattern: Pattern, n: int, d: int, q: int) -> Grid:
    """The grid whose places follow the path γ."""
    path = assumption(pattern, n).path
    assert path is not None
    places = [0] * n
    for i, token in enumerate(path):
        places[token] = i - 1 if i else n - 1
    return Grid(n, d, q, tuple(places))


def sparse_contextual_mapping(grid: Grid, pattern: Pattern, width: int | None = None) -> ShiftLayers:
    """In units of δ; the k-th layer uses step k mod p of the pattern."""
    report = assumption(pattern, grid.n)
    assert report.path is not None
    assert report.reach is not None
    u = (*grid.u, *[0] * ((grid.d if width is None else width) - grid.d))
    rows = []
    for before, token in zip(report.path, report.path[1:], strict=False):
        meets = next(t for t in range(pattern.p) if before in pattern.neighbours(token, grid.n, t))
        for l in range(grid.base(token), grid.base(token) + grid.Q):  # noqa: E741
            rows += [_shift(l, grid.Q if t == meets else 0) for t in range(pattern.p)]
    c = spread_scale(grid, report.reach)
    rows += [((0, 0), (-1, 0), (c, 0))] * report.reach  # a query of 1/2: every token picks its largest neighbour
    return shift_layers(u, rows, tuple(k % pattern.p for k in range(len(rows))), pattern)


def _shift(l: int, scale: int) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:  # noqa: E741
    return ((1, 1), (2 * l - 1, 2 * l + 1), (scale, scale)) if scale else ((0, 0), (0, 0), (0, 0))


def spread_scale(grid: Grid, reach: int) -> int:
    """c = 2snδ^{−nd−1}."""
    return int(2 * reach * grid.n * grid.q ** (grid.n * grid.d + 1))


def sparse_count(grid: Grid, pattern: Pattern) -> int:
    """p(n−1)/δ^d + s."""
    reach = assumption(pattern, grid.n).reach
    assert reach is not None
    return pattern.p * (grid.n - 1) * grid.Q + reach


def sparse_magnitude(grid: Grid, pattern: Pattern) -> Magnitude:
    """A token moves at most once in the sweeps, by Q (max − min); each spreading step multiplies by 1 + c at most."""
    reach = assumption(pattern, grid.n).reach
    assert reach is not None
    top = (grid.n - 1) * grid.stride + grid.Q - 1
    largest = top
    for _ in range(grid.n - 1):
        largest = top + grid.Q * largest
    factor = 1 + spread_scale(grid, reach)
    return Magnitude(largest * factor**reach, largest * factor**reach, largest * factor ** (reach - 1))
