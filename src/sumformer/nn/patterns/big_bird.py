"""BigBird (Zaheer et al. 2020), p = 1: A_k = {j : |j − k| ≤ w} ∪ {j < g} ∪ {r tokens drawn by k},  A_k = [n] for k < g.

The g global tokens are the first ones; a draw is a closed form of (seed, k, n): see `drawn.py`. O(n(w + g + r)).
"""

from __future__ import annotations

from sumformer.nn.patterns.drawn import Drawn
from sumformer.nn.patterns.pattern import Pattern, check_sizes
from sumformer.nn.patterns.relations import Band, First
from sumformer.nn.patterns.step import Step


class BigBird(Pattern):
    """w tokens on either side, g global tokens, r random ones."""

    w: int
    g: int
    r: int
    seed: int

    def __init__(self, w: int, g: int = 1, r: int = 3, seed: int = 0) -> None:
        check_sizes("BigBird", 0, w=w, seed=seed)
        check_sizes("BigBird", 1, g=g, r=r)
        super().__init__(w=w, g=g, r=r, seed=seed)

    @property
    def steps(self) -> tuple[Step, ...]:
        return (Step((Band(self.w), First(self.g), Drawn(self.r, self.seed)), rows=self.g),)
