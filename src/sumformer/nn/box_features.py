"""T_k(u_c), u = clamp((x − centre)·(1/radius), −1, 1): what constructed Sumformers make their features from."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from fractions import Fraction

import torch
from torch import Tensor

from sumformer.errors import InputError
from sumformer.nn.network_operations import chebyshev_table
from sumformer.nn.summarising import SummarisingModule

SLAB_ELEMENTS = 2**20  # numbers held at a time for the tokens of one piece of a long sequence


class BoxFeatures(SummarisingModule, ABC):
    """The box of a network, and constants that follow from its configuration: buffers `_name`, not saved."""

    d: int
    centre: list[str]
    radius: list[str]
    inside: torch.dtype

    def _add_box(self) -> None:
        for name, values in (("centre_", self.centre), ("inverse_radius", [str(1 / Fraction(r)) for r in self.radius])):
            self._add_reals(name, [float(Fraction(v)) for v in values])

    def _add_reals(self, name: str, values: Sequence[float]) -> None:
        exact = torch.tensor(values, dtype=torch.float64)
        self.register_buffer(f"_{name}", exact.to(self.inside), persistent=False)

    def _add_index(self, name: str, values: Sequence[int]) -> None:
        self.register_buffer(f"_{name}", torch.tensor(list(values), dtype=torch.long), persistent=False)

    def _constant(self, name: str) -> Tensor:
        value: Tensor = getattr(self, f"_{name}")
        return value

    def _tables(self, z: Tensor, degrees: Sequence[int]) -> list[Tensor]:
        """For every coordinate c, T_0 … T_degrees[c] at z: (…, d) → (…, degree + 1) each."""
        t = ((z - self._constant("centre_")) * self._constant("inverse_radius")).clamp(-1, 1)
        return [chebyshev_table(t[..., c], degrees[c]) for c in range(self.d)]

    def _padded(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """Padding is moved to the box's centre, where every factor is defined; its weight is 0."""
        return x if keep is None else torch.where(keep.unsqueeze(-1), x, self._constant("centre_").to(x.dtype))

    def _weights(self, z: Tensor, weights: Tensor | None, keep: Tensor | None) -> Tensor:
        """How often each token counts, (batch, n): padding not at all."""
        w = z.new_ones(z.shape[:2], dtype=self.inside) if weights is None else weights.to(self.inside)
        if w.shape != z.shape[:2]:
            raise InputError(f"summarise: expected weights of shape {tuple(z.shape[:2])}, got {tuple(w.shape)}")
        return w if keep is None else torch.where(keep, w, torch.zeros((), dtype=self.inside, device=w.device))
