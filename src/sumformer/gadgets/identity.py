"""t = lo + R(t − lo) for t ≥ lo: a number copied, added or taken away by one hidden unit, exactly."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sumformer.gadgets.units import Gadget, Units


def identity(reads: Mapping[str, float], offset: float, lo: float, writes: Mapping[str, float]) -> Gadget:
    """writes[place] · t to every place, t = ⟨reads, z⟩ + offset ≥ lo: affine where `reads` has several places."""
    unit = Units(
        dict(reads),
        offset,
        np.array([lo]),
        {place: np.array([weight]) for place, weight in writes.items()},
        {place: weight * lo for place, weight in writes.items() if weight * lo},
    )
    return Gadget("identity", ((unit,),), 0.0)
