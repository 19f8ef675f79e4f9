"""T_k(u_c), u = clamp((x − centre)·(1/radius), −1, 1): what constructed Sumformers make their features from."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from fractions import Fraction

import torch
from torch import Tensor

from sumformer.errors import InputError
from sumformer.nn.derived_buffers import DerivedBuffers
from sumformer.nn.network_operations import chebyshev_table
from sumformer.nn.summarising import SummarisingModule

SLAB_ELEMENTS = 2**20  # numbers held at a time for the tokens of one piece of a long sequence
_ON_A_DEVICE = 2**25  # the same where every piece costs launches


def slab_elements(like: Tensor) -> int:
    """How many numbers a piece may hold where `like` is."""
    return SLAB_ELEMENTS if like.device.type == "cpu" else _ON_A_DEVICE


class BoxFeatures(DerivedBuffers, SummarisingModule, ABC):
    """The box of a network, and constants that follow from its configuration: buffers `_name`, not saved."""

    d: int
    centre: list[str]
    radius: list[str]
    inside: torch.dtype

    def _add_box(self) -> None:
        for name, values in (("centre_", self.centre), ("inverse_radius", [str(1 / Fraction(r)) for r in self.radius])):
            self._add_reals(name, [float(Fraction(v)) for v in values])

    def _add_reals(self, name: str, values: Sequence[float]) -> None:
        self._derive(f"_{name}", values, self.inside)

    def _add_index(self, name: str, values: Sequence[int]) -> None:
        self._derive(f"_{name}", values, torch.long)

    def _constant(self, name: str, like: Tensor) -> Tensor:
        return self._derived(f"_{name}", like)

    def _tables(self, z: Tensor, degrees: Sequence[int]) -> list[Tensor]:
        """For every coordinate c, T_0 … T_degrees[c] at z: (…, d) → (…, degree + 1) each."""
        t = ((z - self._constant("centre_", z)) * self._constant("inverse_radius", z)).clamp(-1, 1)
        return [chebyshev_table(t[..., c], degrees[c]) for c in range(self.d)]

    def _padded(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """Padding is moved to the box's centre, where every factor is defined; its weight is 0."""
        return x if keep is None else torch.where(keep.unsqueeze(-1), x, self._constant("centre_", x).to(x.dtype))

    def _weights(self, z: Tensor, weights: Tensor | None, keep: Tensor | None) -> Tensor:
        """How often each token counts, (batch, n): padding not at all."""
        w = z.new_ones(z.shape[:2], dtype=self.inside) if weights is None else weights.to(self.inside)
        if w.shape != z.shape[:2]:
            raise InputError(f"summarise: expected weights of shape {tuple(z.shape[:2])}, got {tuple(w.shape)}")
        return w if keep is None else torch.where(keep, w, torch.zeros((), dtype=self.inside, device=w.device))
