"""(V Σ_k |t_k|^p)^{1/p} from above: a volume or a power below the numbers of float64 is rounded up, never to 0."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from sumformer.certificates.checker.interval import Floats

SUMMED = 1 + 1e-9  # over the rounding of powers, and of sums of at most a million terms ≥ 0
LEAST = 2.0**-1000  # over what powers lose below the normal numbers


def volume_above(volume: Fraction) -> float:
    """The least float64 ≥ `volume`."""
    nearest = float(volume) if volume < Fraction(2) ** 1023 else math.inf
    return nearest if nearest == math.inf or Fraction(nearest) >= volume else math.nextafter(nearest, math.inf)


def powers(sizes: Floats, p: float) -> Floats:
    """t^p for every t ≥ 0; ∞ beyond float64."""
    with np.errstate(over="ignore"):
        out: Floats = np.asarray(sizes) ** p + LEAST
    return out


def root(volume: float, part: float, p: float) -> float:
    """(V · part)^{1/p}; the product itself might underflow."""
    return math.nextafter(volume ** (1 / p) * part ** (1 / p) * SUMMED, math.inf) if part else 0.0
