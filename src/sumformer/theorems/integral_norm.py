"""d_p(f, N) = (V · mean of Σ |f − N|^p)^{1/p}, rounded up: powers and volumes may be below the numbers of float64."""

from __future__ import annotations

from math import inf, nextafter

import numpy as np

from sumformer.algebra.rounding import FloatArray

SUMMED = 1 + 1e-9  # over the rounding of powers, and of sums of at most a million terms ≥ 0
LEAST = 2.0**-1000  # over what powers lose below the normal numbers


def powers(sizes: FloatArray, p: float) -> FloatArray:
    """t^p for every t ≥ 0, from above; ∞ beyond float64."""
    with np.errstate(over="ignore"):
        out: FloatArray = np.asarray(sizes) ** p + LEAST
    return out


def root(volume: float, part: float, p: float) -> float:
    """(V · part)^{1/p} from above; the product itself might underflow."""
    return nextafter(volume ** (1 / p) * part ** (1 / p) * SUMMED, inf) if part else 0.0
