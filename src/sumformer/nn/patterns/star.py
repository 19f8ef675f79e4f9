"""STAR (S), p = 1: one relay joined to all, and a window: A_k = {0} ∪ {j : |j − k| ≤ w},  A_0 = [n]. Reach 2.

The relay is token 0, where a token put in front for the purpose stands. O(n) connections.
"""

from __future__ import annotations

from sumformer.nn.patterns.pattern import Pattern, check_sizes
from sumformer.nn.patterns.relations import Band, First
from sumformer.nn.patterns.step import Step


class Star(Pattern):
    """The relay, and w tokens on either side."""

    w: int

    def __init__(self, w: int = 1) -> None:
        check_sizes("Star", 0, w=w)
        super().__init__(w=w)

    @property
    def steps(self) -> tuple[Step, ...]:
        return (Step((Band(self.w), First(1)), rows=1),)
