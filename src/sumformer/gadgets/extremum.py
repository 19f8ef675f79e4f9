"""|t| = R(t) + R(−t),  max(a, b) = b + R(a − b),  min(a, b) = b − R(b − a): exactly, in one layer."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sumformer.gadgets.identity import identity
from sumformer.gadgets.piecewise_linear import PiecewiseLinear
from sumformer.gadgets.reading import Reading
from sumformer.gadgets.units import Gadget, Units, units_of


def positive(t: Reading, place: str, weight: float = 1.0) -> Units:
    """weight · max(t, 0)."""
    return units_of(t, {place: PiecewiseLinear(np.zeros(1), np.array([weight]), 0.0)})


def absolute(t: Reading, place: str) -> Gadget:
    """|t|."""
    return Gadget("absolute", ((positive(t, place), positive(t * -1.0, place)),), 0.0)


def extremum(op: Literal["min", "max"], a: Reading, b: Reading, place: str) -> Gadget:
    """max(a, b) or min(a, b), where b ≥ b.lo."""
    sign = 1.0 if op == "max" else -1.0
    difference = positive((a - b) * sign, place, sign)
    (copy,) = identity(b, {place: 1.0}).stages[0]
    return Gadget(op, ((difference, copy),), 0.0)
