"""Products and quotients of bounds ≥ 0, rounded up: what underflows is not 0, as another factor may be large."""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from sumformer.certificates.checker.interval import Floats


def times(*factors: ArrayLike) -> Floats:
    """≥ Π factors, step by step."""
    return reduce(_times, (np.asarray(factor, dtype=np.float64) for factor in factors))


def over(above: ArrayLike, *divisors: ArrayLike) -> Floats:
    """≥ above / Π divisors, divisors > 0."""
    return reduce(_over, (np.asarray(number, dtype=np.float64) for number in (above, *divisors)))


def _times(a: Floats, b: Floats) -> Floats:
    with np.errstate(invalid="ignore"):  # 0 · ∞ stays unknown
        return _up(a * b, (a != 0) & (b != 0))


def _over(a: Floats, b: Floats) -> Floats:
    return _up(a / b, a != 0)


def _up(found: Floats, positive: Floats) -> Floats:
    return np.asarray(np.where(positive, np.nextafter(found, np.inf), found))
