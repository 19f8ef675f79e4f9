"""Equal cells along each side of the box, as tables of edges and centres, and how many of them a code can take."""

from __future__ import annotations

from fractions import Fraction

import torch

from sumformer.algebra.rounding import fraction_bounds
from sumformer.errors import RefusedError
from sumformer.nn.cell_grid import CellGrid
from sumformer.targets.domain import Box, Tokens

MOST_CELLS = 2**20
MOST_LANES = 2**12  # coordinates of Σ where n is a range
MOST_TOKENS = 4096


def fill_tables(network: CellGrid, box: Box, positioned: bool = False) -> list[float]:
    """Write the tables; per coordinate max over cells of radius / half side, from the tables as rounded, rounded up.

    The last coordinate of a positioned target has a cell for each place 1, …, n, the place its centre: no error.
    """
    ratios = []
    for c, count in enumerate(network.cells):
        low, side = box.lower[c], box.upper[c] - box.lower[c]
        places = positioned and c == len(network.cells) - 1
        exact_edges = [Fraction(2 * k + 1, 2) if places else low + side * k / count for k in range(1, count)]
        middles = [Fraction(k + 1) if places else low + side * (2 * k + 1) / (2 * count) for k in range(count)]
        edges = torch.tensor([float(e) for e in exact_edges], dtype=torch.float64)
        centres = torch.tensor([float(m) for m in middles], dtype=torch.float64).to(network.inside)
        network.edges[c].data.copy_(edges)
        network.centres[c].data.copy_(centres)
        if not places:
            ends = [low, *map(Fraction, edges.tolist()), box.upper[c]]
            exact = [Fraction(v) for v in centres.tolist()]
            radius = max(max(m - a, b - m) for m, a, b in zip(exact, ends[:-1], ends[1:], strict=True))
            ratios.append(fraction_bounds(2 * radius / side)[1])
    return ratios


def refuse_tokens(tokens: Tokens) -> None:
    """A code counts up to a known number of tokens."""
    if tokens.symbolic or tokens.maximum > MOST_TOKENS:
        reason = f"a code counts up to a known n ≤ {MOST_TOKENS}, got {tokens.formula()}: give n, as --tokens 8"
        raise RefusedError("route grid needs the number of tokens", [reason])


def most_cells(tokens: Tokens, d: int, times: int = 1) -> int:
    """The largest k with times·k^d cells within the codes' reach."""
    n = tokens.maximum
    most = MOST_CELLS
    while n * (2 * most) ** 2 >= 2**53:  # there is a prime q < 2·cells, and a syndrome needs n·q² < 2^53
        most //= 2
    if not tokens.exact:
        most = min(most, MOST_LANES * (53 // n.bit_length()))
    side = int((most / times) ** (1 / d)) + 1
    while side > 1 and times * side**d > most:
        side -= 1
    return side
