"""t = ⟨weights, z⟩ + offset ∈ [lo, hi]: the number a gadget reads of named places z, and where it is known to lie.

Readings add and scale as affine functions do; the result has no range until `within` states one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite

from sumformer.errors import InputError


@dataclass(frozen=True, eq=False)
class Reading:
    """`Reading({"a": 2.0}, 1.0, -3.0, 5.0)` is 2a + 1, known to lie in [−3, 5]."""

    weights: Mapping[str, float]
    offset: float = 0.0
    lo: float = -inf
    hi: float = inf
    size: float | None = None
    """A bound of Σ|weight · z|: deep realisations must know it where several places are read."""

    @property
    def centre(self) -> float:
        return (self.lo + self.hi) / 2

    @property
    def radius(self) -> float:
        return (self.hi - self.lo) / 2

    @property
    def magnitude(self) -> float:
        """max |t|."""
        return max(abs(self.lo), abs(self.hi))

    @property
    def known_size(self) -> float | None:
        """`size`; of one place it follows from the range."""
        if self.size is not None or len(self.weights) > 1:
            return self.size
        return self.magnitude + abs(self.offset)

    def within(self, lo: float, hi: float) -> Reading:
        return replace(self, lo=lo, hi=hi)

    def __add__(self, other: Reading | float) -> Reading:
        if not isinstance(other, Reading):
            return Reading(self.weights, self.offset + other)
        names = {**self.weights, **other.weights}
        sums = {n: self.weights.get(n, 0.0) + other.weights.get(n, 0.0) for n in names}
        return Reading({n: w for n, w in sums.items() if w}, self.offset + other.offset)

    def __sub__(self, other: Reading | float) -> Reading:
        return self + other * -1.0

    def __mul__(self, factor: float) -> Reading:
        return Reading({n: w * factor for n, w in self.weights.items()}, self.offset * factor)

    def __truediv__(self, divisor: float) -> Reading:
        return Reading({n: w / divisor for n, w in self.weights.items()}, self.offset / divisor)


def require_range(*readings: Reading) -> None:
    """Weights are built from the ends of a range: it must have them."""
    for t in readings:
        if not (isfinite(t.lo) and isfinite(t.hi)):
            raise InputError(f"expected a reading with a range, as `within` states one, got [{t.lo}, {t.hi}]")
