"""T_k(u_c), u = clamp((x − centre)·(1/radius), −1, 1): what constructed Sumformers make their features from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction

import torch
from torch import Tensor

from sumformer.errors import InputError
from sumformer.nn.derived_buffers import DerivedBuffers
from sumformer.nn.inputs import check_tokens, keep_from_attention_mask
from sumformer.nn.network_operations import chebyshev_table
from sumformer.nn.summarising import SummarisingModule
from sumformer.nn.summary import Summary

SLAB_ELEMENTS = 2**20  # numbers held at a time for the tokens of one piece of a long sequence
_ON_A_DEVICE = 2**25  # the same where every piece costs launches


def slabs(numbers: int, *tensors: Tensor, group: int = 1) -> list[tuple[Tensor, ...]]:
    """Tensors (batch, n, …) cut along n alike, for a computation that holds `numbers` of them for each token.

    A piece is a multiple of `group` tokens; in torch.compile and export there is one piece.
    """
    first = tensors[0]
    if torch.compiler.is_compiling():
        return [tensors]
    most = SLAB_ELEMENTS if first.device.type == "cpu" else _ON_A_DEVICE
    tokens = max(1, most // (numbers * max(1, first.shape[0])))
    slab = max(1, tokens // group) * group
    if slab >= first.shape[1]:
        return [tensors]
    return list(zip(*(torch.split(tensor, slab, dim=1) for tensor in tensors), strict=True))


class BoxFeatures(DerivedBuffers, SummarisingModule, ABC):
    """The box of a network, and constants that follow from its configuration: buffers `_name`, not saved."""

    d: int
    centre: list[str]
    radius: list[str]
    inside: torch.dtype

    @abstractmethod
    def _summarise(self, z: Tensor, weights: Tensor | None, keep: Tensor | None) -> Summary:
        """`summarise` without input checks."""

    def summarise(self, z: Tensor, weights: Tensor | None = None, attention_mask: Tensor | None = None) -> Summary:
        """Σ over sources z (batch, m, d), each counted `weights` ≥ 0 times."""
        where = f"{type(self).__name__}.summarise"
        check_tokens(where, z, self.d)
        return self._summarise(z, weights, keep_from_attention_mask(where, z, attention_mask))

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
        t = self._centred(z)
        return [chebyshev_table(t[..., c], degrees[c]) for c in range(self.d)]

    def _centred(self, z: Tensor) -> Tensor:
        return ((z - self._constant("centre_", z)) * self._constant("inverse_radius", z)).clamp(-1, 1)

    def _padded(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """Padding is moved to the box's centre, where every factor is defined; its weight is 0."""
        return x if keep is None else torch.where(keep.unsqueeze(-1), x, self._constant("centre_", x).to(x.dtype))

    def _weights(self, z: Tensor, weights: Tensor | None, keep: Tensor | None) -> Tensor:
        """How often each token counts, (batch, n): padding not at all."""
        w = z.new_ones(z.shape[:2], dtype=self.inside) if weights is None else weights.to(self.inside)
        if w.shape != z.shape[:2]:
            raise InputError(f"summarise: expected weights of shape {tuple(z.shape[:2])}, got {tuple(w.shape)}")
        return w if keep is None else torch.where(keep, w, torch.zeros((), dtype=self.inside, device=w.device))
