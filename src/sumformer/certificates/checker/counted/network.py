"""config.json of a `CellSumformer`: the expression, and the cells that stand for tokens inside its reductions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from sumformer.certificates.certificate import MAX_COORDINATES
from sumformer.certificates.checker.files import read_described
from sumformer.certificates.checker.grid.tables import MAX_CELLS
from sumformer.certificates.checker.json_values import has_keys, integer, items
from sumformer.targets.coordinatewise import Family, coordinatewise, families
from sumformer.targets.node import Node
from sumformer.targets.parser import parse

TYPE = "CellSumformer"
MAX_OWN = 2**62  # cells of own tokens, whose numbers are int64
_KEYS = {"type", "expression", "d", "cells", "arithmetic"}


@dataclass(frozen=True)
class Network:
    """The formula, and the number of cells along each coordinate."""

    expression: Node
    d: int
    cells: tuple[int, ...]
    arithmetic: str

    @property
    def latent_dimension(self) -> int:
        """Σ has a count for each cell, of a grid for each set of coordinates that reductions see."""
        return sum(self._product(seen) for seen in {family.seen for family in self._families})

    @property
    def own_cells(self) -> int:
        """The most cells of own tokens that reductions are evaluated at."""
        return max((self._product(family.own) for family in self._families), default=1)

    @property
    def _families(self) -> tuple[Family, ...]:
        return families(coordinatewise(self.expression))

    def _product(self, coordinates: Sequence[int]) -> int:
        return prod(self.cells[c] for c in coordinates)


def read_counted(folder: Path) -> Network:
    return read_described(folder, "a network that counts cells", _network)


def _network(data: Any) -> Network:
    has_keys(data, _KEYS)
    d = integer(data["d"])
    cells = tuple(integer(k) for k in items(data["cells"]))
    if data["type"] != TYPE:
        raise ValueError(f"expected a network of type {TYPE}, got {data['type']!r}")
    if not 1 <= d <= MAX_COORDINATES or len(cells) != d:
        raise ValueError(f"expected 1 ≤ d ≤ {MAX_COORDINATES}, and d numbers of cells")
    if any(k < 1 for k in cells):
        raise ValueError("expected at least one cell along each coordinate")
    if data["arithmetic"] not in ("float64", "float32", "mixed"):
        raise ValueError(f"unknown arithmetic {data['arithmetic']!r}")
    if not isinstance(data["expression"], str):
        raise ValueError("expected the expression as a string")
    network = Network(parse(data["expression"], d), d, cells, data["arithmetic"])
    if network.latent_dimension > MAX_CELLS:
        raise ValueError(f"expected at most {MAX_CELLS} cells in all")
    if network.own_cells > MAX_OWN:
        raise ValueError("expected at most 2^62 cells of own tokens")
    return network
