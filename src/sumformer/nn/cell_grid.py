"""q: box → {0, …, K − 1}, the cell of a grid that a token lies in, and the centre that stands for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sumformer.errors import InputError
from sumformer.nn.arithmetics import dtypes_of
from sumformer.nn.sequence_reader import SequenceReader


class CellGrid(SequenceReader, ABC):
    """`cells` = [K_0, …, K_{d−1}], and for each coordinate c the parameters, as saved:

    `edges.c`    float64 (K_c − 1,), ascending: x lies in cell p_c(x) = #{e ∈ edges.c : e ≤ x_c} ∈ {0, …, K_c − 1}
    `centres.c`  of the dtype inside, (K_c,): the number that stands for x_c in cell p_c
    The cell's number is q(x) = (…(p_0 K_1 + p_1) K_2 + …) K_{d−1} + p_{d−1} < K = Π K_c.
    """

    def __init__(self, d: int, cells: Sequence[int], arithmetic: str) -> None:
        super().__init__()
        if len(cells) != d or any(k < 1 for k in cells):
            raise InputError(f"{type(self).__name__}: expected {d} numbers of cells ≥ 1, got {list(cells)}")
        self.d, self.cells, self.arithmetic = d, list(cells), arithmetic
        self.inside, self.outside = dtypes_of(arithmetic, type(self).__name__)
        self.edges = nn.ParameterList(nn.Parameter(torch.zeros(k - 1, dtype=torch.float64)) for k in cells)
        self.centres = nn.ParameterList(nn.Parameter(torch.zeros(k, dtype=self.inside)) for k in cells)

    @property
    @abstractmethod
    def latent_dimension(self) -> int:
        """d', the number of coordinates of Σ."""

    def quantise(self, x: Tensor, coordinates: Sequence[int] | None = None) -> Tensor:
        """q(x): (…, d) → (…), the cell's number; per coordinate, how many edges are ≤ x_c, exactly compared.

        Of some `coordinates` alone: the number of the cell of a grid over these.
        """
        number = torch.zeros(x.shape[:-1], dtype=torch.int64, device=x.device)
        for c in self._axes(coordinates):
            below = _count_below(self.edges[c].detach(), x[..., c].detach().double().contiguous())
            number = number * self.cells[c] + below
        return number

    def cell_by_hand(self, token: Sequence[float], coordinates: Sequence[int] | None = None) -> int:
        """q of one token as the formula has it, which `quantise` must give too."""
        number = 0
        for c in self._axes(coordinates):
            number = number * self.cells[c] + sum(edge <= token[c] for edge in self.edges[c].tolist())
        return number

    def centre_of(self, number: Tensor, coordinates: Sequence[int] | None = None) -> Tensor:
        """(…) → (…, d), the centre of the cell with that number; 0 in coordinates that are not of its grid."""
        axes = self._axes(coordinates)
        columns = [self.centres[0].new_zeros(()).expand(number.shape)] * self.d
        for c in reversed(axes):
            columns[c] = self.centres[c][number % self.cells[c]]
            number = number // self.cells[c]
        return torch.stack(columns, dim=-1)

    def shared(self, number: Tensor, coordinates: Sequence[int], fewer: Sequence[int]) -> Tensor:
        """The number of the same cell in a grid over some of its coordinates."""
        place: dict[int, Tensor] = {}
        for c in reversed(coordinates):
            place[c] = number % self.cells[c]
            number = number // self.cells[c]
        result = torch.zeros_like(number)
        for c in fewer:
            result = result * self.cells[c] + place[c]
        return result

    def nearest(self, x: Tensor) -> Tensor:
        """(…, d) → (…, d), the centre of the token's cell."""
        return torch.stack([self.centre_of(self.quantise(x, [c]), [c])[..., c] for c in range(self.d)], dim=-1)

    def _axes(self, coordinates: Sequence[int] | None) -> Sequence[int]:
        return range(self.d) if coordinates is None else coordinates


def _count_below(edges: Tensor, x: Tensor) -> Tensor:
    """#{e ∈ edges : e ≤ x}; ONNX has no search, so an exported graph compares them all."""
    if torch.compiler.is_exporting():
        # a product counts as a sum does, and onnxruntime knows its shape where the batch is empty
        below = (edges <= x.unsqueeze(-1)).to(edges.dtype) @ torch.ones_like(edges).unsqueeze(-1)
        return below.squeeze(-1).long() if edges.shape[0] else torch.zeros_like(x, dtype=torch.int64)
    return torch.searchsorted(edges, x, right=True)
