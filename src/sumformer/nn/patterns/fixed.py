"""FIXED (S), p = 2: A_k^0 = {j : ⌊j/ℓ⌋ = ⌊k/ℓ⌋},  A_k^1 = {k} ∪ {last token of every block of ℓ}.

Where ℓ does not divide n the last block is shorter, and its last token is n − 1. For ℓ ≈ √n, O(n√n) connections.
"""

from __future__ import annotations

from sumformer.nn.patterns.pattern import Pattern, check_sizes
from sumformer.nn.patterns.relations import SELF, BlockEnds, SameBlock
from sumformer.nn.patterns.step import Step


class Fixed(Pattern):
    """The own block of l; the token itself and the last of every block."""

    l: int  # noqa: E741

    def __init__(self, l: int) -> None:  # noqa: E741
        check_sizes("Fixed", 1, l=l)
        super().__init__(l=l)

    @property
    def steps(self) -> tuple[Step, ...]:
        return Step((SameBlock(self.l),)), Step((SELF, BlockEnds(self.l)))
