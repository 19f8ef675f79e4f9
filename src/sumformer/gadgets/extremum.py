"""|t| = R(t) + R(−t),  max(a, b) = b + R(a − b),  min(a, b) = b − R(b − a): exactly, in one layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from sumformer.gadgets.identity import identity
from sumformer.gadgets.units import Gadget, Units

Reads = tuple[Mapping[str, float], float]


def positive(reads: Mapping[str, float], offset: float, place: str, weight: float = 1.0) -> Units:
    """weight · max(t, 0)."""
    return Units(dict(reads), offset, np.zeros(1), {place: np.array([weight])}, {})


def absolute(reads: Mapping[str, float], offset: float, place: str) -> Gadget:
    """|t|."""
    negative = {name: -weight for name, weight in reads.items()}
    return Gadget("absolute", ((positive(reads, offset, place), positive(negative, -offset, place)),), 0.0)


def extremum(op: Literal["min", "max"], a: Reads, b: Reads, b_lowest: float, place: str) -> Gadget:
    """max(a, b) or min(a, b), where b ≥ b_lowest."""
    sign = 1.0 if op == "max" else -1.0
    names = {**a[0], **b[0]}
    reads = {n: sign * (a[0].get(n, 0.0) - b[0].get(n, 0.0)) for n in names}
    difference = positive({n: w for n, w in reads.items() if w}, sign * (a[1] - b[1]), place, sign)
    (copy,) = identity(b[0], b[1], b_lowest, {place: 1.0}).stages[0]
    return Gadget(op, ((difference, copy),), 0.0)
