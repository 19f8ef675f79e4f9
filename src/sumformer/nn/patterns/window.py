"""Sliding window: A_k = {j : |j − k| ≤ w}, p = 1. Reach ⌈(n − 1)/w⌉."""

from __future__ import annotations

from sumformer.nn.patterns.pattern import Pattern, check_sizes
from sumformer.nn.patterns.relations import Band
from sumformer.nn.patterns.step import Step


class Window(Pattern):
    """w tokens on either side; w = 0 leaves only the token itself."""

    w: int

    def __init__(self, w: int) -> None:
        check_sizes("Window", 0, w=w)
        super().__init__(w=w)

    @property
    def steps(self) -> tuple[Step, ...]:
        return (Step((Band(self.w),)),)
