"""(Σ c · monomial, error, range) of a number: |number − Σ| ≤ error, number ∈ range.

An error that is not 0 is at least FLOOR, and numbers that errors are multiplied by lie between FLOOR and 1/FLOOR: so no
product of them is lost to underflow, or divided by an overflow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sumformer.certificates.checker.compiled.atoms import Terms
from sumformer.certificates.checker.interval import Interval
from sumformer.certificates.checker.verification import Unproved

FLOOR = 1e-150


@dataclass(frozen=True, slots=True)
class Element:
    """A value as a sum of monomials, within `error`, and an interval that holds it."""

    terms: Terms
    error: float
    range: Interval

    def __post_init__(self) -> None:
        if self.error != 0 and not self.error >= FLOOR:
            object.__setattr__(self, "error", math.inf if math.isnan(self.error) else FLOOR)

    @property
    def size(self) -> float:
        """≥ |value|, in the range in which errors are multiplied; ∞ beyond it."""
        found = float(self.range.magnitude)
        return max(found, FLOOR) if 0 < found <= 1 / FLOOR else (0.0 if found == 0 else math.inf)


def moderate(factor: Any) -> Any:
    """The factor, if errors may be multiplied by it."""
    if factor and not FLOOR <= abs(float(factor)) <= 1 / FLOOR:
        raise Unproved(f"identity: numbers beyond {1 / FLOOR:g}, or below {FLOOR:g}, are not followed")
    return factor


def between(low: float, high: float) -> Interval:
    return Interval(np.asarray(low), np.asarray(high))


def widened(v: Interval, by: float) -> Interval:
    return Interval(np.nextafter(v.lo - by, -np.inf), np.nextafter(v.hi + by, np.inf)) if by else v
