"""RANDOM (S), p = 1: A_k = {k} ∪ {r tokens drawn by k}, one from each of r equal stretches of the sequence.

A draw is a closed form of (seed, k, n): see `drawn.py`. O(nr) connections.
"""

from __future__ import annotations

from sumformer.errors import InputError
from sumformer.nn.patterns.drawn import Drawn
from sumformer.nn.patterns.pattern import Pattern, check_sizes
from sumformer.nn.patterns.relations import SELF
from sumformer.nn.patterns.step import Step


class Random(Pattern):
    """r random tokens for each token."""

    r: int
    seed: int

    def __init__(self, r: int, seed: int = 0) -> None:
        check_sizes("Random", 1, r=r)
        check_sizes("Random", 0, seed=seed)
        super().__init__(r=r, seed=seed)

    @classmethod
    def of_density(cls, density: float, n: int, seed: int = 0) -> Random:
        """The pattern that connects about a share `density` of the n² pairs."""
        if not 0 < density <= 1:
            raise InputError(f"Random.of_density: expected 0 < density ≤ 1, got {density!r}")
        return cls(max(1, round(density * n) - 1), seed)

    @property
    def steps(self) -> tuple[Step, ...]:
        return (Step((SELF, Drawn(self.r, self.seed))),)
