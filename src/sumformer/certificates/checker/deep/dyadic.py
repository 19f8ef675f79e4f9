"""A W ᵀ + b in float64, and where it is exact: all products are multiples of a grain g, and Σ |a w| + |b| < 2^53 g.

Then every product and every partial sum is a float64, in any order and with or without fused operations: what numpy
computes here is what the network computes there. Where g is below `FLOOR` products may underflow, and nothing is exact
but sums of zeros; a product that underflows is off by far less than `FLOOR`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
U = 2.0**-53
ZEROS = 2.0**400
FLOOR = 2.0**-1000


def grain(values: Floats) -> float:
    """The largest power of two that divides all of them; 2^400 for zeros."""
    return float(lowest(values).min(initial=ZEROS))


def lowest(values: Floats) -> Floats:
    """The largest power of two that divides each."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest: Floats = np.ldexp((whole & -whole).astype(np.float64), exponent - 53)
    return np.where(values == 0, ZEROS, lowest)


def _columns(values: Floats) -> Floats:
    """(…, m) → (m,), the grain of each column."""
    out: Floats = lowest(values.reshape(-1, values.shape[-1])).min(0, initial=ZEROS)
    return out


def affine(a: Floats, w: Floats, b: Floats | None = None) -> tuple[Floats, Floats, Floats]:
    """(…, m), (k, m) → the value (…, k), a bound of its error, 0 where exact, and Σ|a w| + |b|.

    Products with column c are multiples of its grain in a times that in w. (8 + m)u Σ and `FLOOR` cover any order of
    the m summands. 2^52 for 2^53: the sum of sizes is itself rounded.
    """
    value = a @ w.T + (0.0 if b is None else b)
    mass = np.abs(a) @ np.abs(w).T + (0.0 if b is None else np.abs(b))
    step = float((_columns(a) * _columns(w)).min(initial=ZEROS))
    step = step if b is None else min(step, grain(b))
    exact = mass <= 2.0**52 * step if step >= FLOOR else np.zeros(mass.shape, dtype=np.bool_)
    if not bool(exact.all()):
        exact = exact | ~(_meets(a, w) | (False if b is None else b != 0))
    error = np.where(exact, 0.0, (8 + a.shape[-1]) * U * mass + FLOOR)
    return value, error, mass


def spread(radius: Floats, w: Floats) -> Floats:
    """(…, m), (k, m) → |w| radius (…, k), rounded up; 0 only where all summands are."""
    if not np.any(radius):
        return np.zeros((*radius.shape[:-1], len(w)))
    return np.where(_meets(radius, w), radius @ np.abs(w).T * (1 + (8 + len(w.T)) * U) + FLOOR, 0.0)


def _meets(a: Floats, w: Floats) -> NDArray[np.bool_]:
    """Which of the sums a wᵀ have a summand that is not 0."""
    meets: NDArray[np.bool_] = (a != 0).astype(np.float64) @ (w != 0).astype(np.float64).T > 0
    return meets
