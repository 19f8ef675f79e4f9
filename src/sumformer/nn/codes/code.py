"""What the codes share, and the choice of the one with the smallest latent dimension d'."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

from sumformer.errors import InputError, RefusedError
from sumformer.nn.codes.integer_code import IntegerCode
from sumformer.nn.codes.lane_code import LaneCode
from sumformer.nn.codes.syndrome_code import SyndromeCode


class Code(Protocol):
    """φ: {0, …, cells − 1} → latent coordinates; Σ over at most `n` tokens, exactly."""

    cells: int
    n: int
    exact: bool  # for exactly n tokens, not for fewer

    @property
    def latent_dimension(self) -> int: ...
    def encode(self, c: Tensor) -> Any:
        """φ(c) for cells c of any shape: a new last axis of length d'."""
        ...

    def sum(self, c: Tensor) -> Any:
        """Σ_k φ(c_k) for cells c (rows, n)."""
        ...

    def decode(self, total: Any, m: int) -> Tensor:
        """The m cells whose codes add up to `total` (rows, d'): (rows, m), ascending."""
        ...


MOST_BITS = 2**20
CODES = ("integer", "integer n+1", "lanes", "lanes n+1", "syndrome")


def make_code(name: str, cells: int, n: int) -> Code:
    """The code of that name for `cells` cells and at most n tokens; "n+1": in the base of the proof, else base 2^b."""
    if name not in CODES:
        raise InputError(f"code: expected one of {', '.join(CODES)}; got {name!r}")
    if cells < 1 or n < 1:
        raise InputError(f"code: expected at least one cell and one token, got {cells} and {n}")
    if name == "syndrome":
        return SyndromeCode(cells, n)
    base = n + 1 if name.endswith("n+1") else 1 << n.bit_length()
    return IntegerCode(cells, n, base) if name.startswith("integer") else LaneCode(cells, n, base)


def check_code(name: str, cells: int, n: int, exact: bool) -> str:
    """A code that was asked for by name, where it tells apart what it must and a token's is of a size to be handled."""
    make_code(name, 1, 1)
    if name == "syndrome" and not exact:
        raise RefusedError("a syndrome code is for one number of tokens", ["fix n, as --tokens 8, or take lanes"])
    if name != "syndrome" and cells * n.bit_length() > MOST_BITS:
        size = f"code {name}: {cells} cells take more than {MOST_BITS} binary digits a token"
        raise RefusedError(size, ["a larger ε, or the syndrome code, which takes n − 1 numbers"])
    return name


def smallest_code(cells: int, n: int, exact: bool = True) -> str:
    """The name of the float64 code with the smallest d': lanes for few cells, the syndrome for many.

    Where n is a range (`exact` False) the digits of the lanes say how many tokens there are; a syndrome would not.
    """
    sizes = {"lanes": LaneCode(cells, n, 1 << n.bit_length()).latent_dimension}
    sizes["lanes n+1"] = LaneCode(cells, n, n + 1).latent_dimension
    if exact:
        sizes["syndrome"] = SyndromeCode.dimension(n)
    return min(sizes, key=sizes.__getitem__)
