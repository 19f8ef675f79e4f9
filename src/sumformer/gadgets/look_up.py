"""values_k where edge_k ≤ t < edge_{k+1}: a table by ReLU, exact but on ramps of the given width around the edges.

A step is a table of two values, a bump one of three. ReLU networks are continuous, so ramps there must be: on a ramp
the result lies between the two values beside it, and nothing better is claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from sumformer.errors import InputError
from sumformer.gadgets.piecewise_linear import through
from sumformer.gadgets.reading import Reading, require_range
from sumformer.gadgets.units import Gadget, units_of


def look_up(t: Reading, edges: Sequence[float], values: Sequence[float], ramp: float, place: str) -> Gadget:
    """len(values) = len(edges) + 1; on [edge − ramp/2, edge + ramp/2] the value moves linearly to the next."""
    require_range(t)
    if len(values) != len(edges) + 1 or not ramp > 0:
        raise InputError("look_up: expected one value more than edges, and a ramp > 0")
    ends = [t.lo, *(e + side * ramp / 2 for e in edges for side in (-1, 1)), t.hi]
    if any(b <= a for a, b in pairwise(ends)):
        raise InputError("look_up: expected ramps that do not meet, inside the range")
    heights = [v for v in values for _ in (0, 1)]
    return Gadget("look-up", ((units_of(t, {place: through(np.array(ends), np.array(heights))}),),), 0.0)


def step(t: Reading, at: float, ramp: float, place: str) -> Gadget:
    """0 before, 1 behind."""
    return look_up(t, [at], [0.0, 1.0], ramp, place)


def bump(t: Reading, inside: tuple[float, float], ramp: float, place: str) -> Gadget:
    """1 inside, 0 outside."""
    return look_up(t, inside, [0.0, 1.0, 0.0], ramp, place)
