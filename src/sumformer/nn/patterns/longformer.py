"""Longformer (Beltagy, Peters, Cohan 2020), p = 1: A_k = {j : |j − k| ≤ w} ∪ {j < g},  A_k = [n] for k < g.

The g global tokens are the first ones. One set of weights serves both kinds of connection. O(n(w + g)) connections.
"""

from __future__ import annotations

from sumformer.nn.patterns.pattern import Pattern, check_sizes
from sumformer.nn.patterns.relations import Band, First
from sumformer.nn.patterns.step import Step


class Longformer(Pattern):
    """w tokens on either side, and g global tokens that see all and are seen by all."""

    w: int
    g: int

    def __init__(self, w: int, g: int = 1) -> None:
        check_sizes("Longformer", 0, w=w)
        check_sizes("Longformer", 1, g=g)
        super().__init__(w=w, g=g)

    @property
    def steps(self) -> tuple[Step, ...]:
        return (Step((Band(self.w), First(self.g)), rows=self.g),)
