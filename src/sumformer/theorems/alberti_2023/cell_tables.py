"""The tables of counts of a network on cells: a grid for each set of coordinates that reductions see together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from sumformer.targets import Node
from sumformer.targets.coordinatewise import Family, coordinatewise, families
from sumformer.theorems.alberti_2023.grid_tables import MOST_CELLS

MOST_PAIRS = 2**30  # of an own cell and one that is seen, where bodies read x


@dataclass(frozen=True)
class CellTables:
    """`counts` are the cells along each coordinate, in all that follows."""

    families: tuple[Family, ...]

    @staticmethod
    def of(expression: Node) -> CellTables:
        return CellTables(families(coordinatewise(expression)))

    @property
    def seen(self) -> tuple[tuple[int, ...], ...]:
        return tuple(dict.fromkeys(family.seen for family in self.families))

    @property
    def paired(self) -> bool:
        return any(family.own for family in self.families)

    def cells(self, counts: Sequence[int]) -> int:
        """d'."""
        return sum(_product(coordinates, counts) for coordinates in self.seen)

    def pairs(self, counts: Sequence[int]) -> int:
        """The most that one family is evaluated on."""
        return max((_product(f.own, counts) * _product(f.seen, counts) for f in self.families if f.own), default=0)

    def fits(self, counts: Sequence[int]) -> bool:
        return self.cells(counts) <= MOST_CELLS and self.pairs(counts) <= MOST_PAIRS

    def told(self, counts: Sequence[int]) -> str:
        """49 × 49 cells; 28 grids of 37449 cells; grids of 15 × 15 and 20 cells."""
        shapes = [" × ".join(str(counts[c]) for c in coordinates) for coordinates in self.seen]
        different = list(dict.fromkeys(shapes))
        if len(shapes) < 2:
            return f"{shapes[0]} cells" if shapes else "no cells, as nothing is reduced"
        if len(different) == 1:
            return f"{len(shapes)} grids of {different[0]} cells, one for each set of coordinates read together"
        if len(different) > 4:
            return f"{len(shapes)} grids of {self.cells(counts)} cells together"
        return f"grids of {', '.join(different[:-1])} and {different[-1]} cells, for coordinates read together"


def _product(coordinates: Sequence[int], counts: Sequence[int]) -> int:
    return prod(counts[c] for c in coordinates)
