"""STRIDED (S), p = 2: A_k^0 = {j : |j − k| ≤ ℓ},  A_k^1 = {j : j ≡ k mod ℓ}. For ℓ ≈ √n, O(n√n) connections."""

from __future__ import annotations

from sumformer.nn.patterns.pattern import Pattern, check_sizes
from sumformer.nn.patterns.relations import Band, Stride
from sumformer.nn.patterns.step import Step


class Strided(Pattern):
    """A window of l on either side; every l-th token."""

    l: int  # noqa: E741

    def __init__(self, l: int) -> None:  # noqa: E741
        check_sizes("Strided", 1, l=l)
        super().__init__(l=l)

    @property
    def steps(self) -> tuple[Step, ...]:
        return Step((Band(self.l),)), Step((Stride(self.l),))
