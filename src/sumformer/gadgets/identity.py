"""t = lo + R(t − lo) for t ≥ lo: a number copied, added or taken away by one hidden unit, exactly."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sumformer.errors import InputError
from sumformer.gadgets.piecewise_linear import PiecewiseLinear
from sumformer.gadgets.reading import Reading
from sumformer.gadgets.units import Gadget, units_of


def identity(t: Reading, writes: Mapping[str, float]) -> Gadget:
    """writes[place] · t to every place; of its range only the lower end matters."""
    if not np.isfinite(t.lo):
        raise InputError(f"identity: expected a reading with a lower end, got [{t.lo}, {t.hi}]")
    lines = {p: PiecewiseLinear(np.array([t.lo]), np.array([w]), w * t.lo) for p, w in writes.items()}
    return Gadget("identity", ((units_of(t, lines),),), 0.0)
