"""The Sumformer of the discontinuous proof for a function known by its values: ψ calls it at the decoded centres."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from sumformer.errors import InputError, NotSupportedError
from sumformer.nn.grid_module import GridModule


class OpaqueGridSumformer(GridModule):
    """N(X)_i = F(x_i, centre(c_1), …, centre(c_{n−1}))_1; all but F is as in `GridSumformer`.

    A saved folder keeps F's qualified name in `config.json` under `function`, never code: `bind` gives F back.
    """

    def __init__(
        self, function: str, width: int, d: int, n: int, cells: Sequence[int], code: str, arithmetic: str
    ) -> None:
        super().__init__(d, n, cells, code, arithmetic)
        self.function, self.width = function, width
        self._call: Callable[[Tensor], Tensor] | None = None

    def bind(self, call: Callable[[Tensor], Tensor]) -> OpaqueGridSumformer:
        """Use `call` as F."""
        self._call = call
        return self

    def value(self, own: Tensor, others: Tensor) -> Tensor:
        if self._call is None:
            raise InputError(f"only the name {self.function} was saved, not the function: give it, load(…, function=…)")
        everyone = torch.cat([own, others], dim=1)
        return (self._traced(everyone) if torch.compiler.is_compiling() else self._call(everyone))[:, 0]

    def _traced(self, X: Tensor) -> Tensor:
        """F within a graph that is compiled or exported, which knows torch's operations only."""
        try:
            return self._call(X)  # type: ignore[misc]
        except RuntimeError as error:
            raise NotSupportedError(
                f"{self.function} cannot be traced: it is not made of torch alone ({error})"
            ) from error

    def extra_repr(self) -> str:
        grid = "×".join(str(k) for k in self.cells)
        return f"ℝ^{{n×{self.d}}} → ℝ^{{n×{self.width}}}, n ≤ {self.n}, {self.function}, {grid} cells, code {self.code}"
