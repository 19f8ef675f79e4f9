"""|fl(FC(z)) − FC(z)| ≤ |W_2| r_1 + γ (|W_2| h + |b_2| + |z|),  r_1 = γ h,  h = |W_1||z| + |b_1|,  of one layer.

γ = γ_{k+12}, k the entries of a row: whatever the order of summation, and with the weights' own rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sumformer.gadgets.units import Units

U = 2.0**-53


def gamma(k: int) -> float:
    """γ_{k+12}, rounded up."""
    return (k + 12) * U / (1 - (k + 12) * U) * (1 + 1e-12)


def stage_rounding(stage: Sequence[Units], read: Mapping[str, float], written: Mapping[str, float]) -> dict[str, float]:
    """By place, what one layer adds to z + FC(z), for |z| ≤ `read` where it is read, ≤ `written` where written."""
    entries: dict[str, int] = {}
    size: dict[str, float] = {}
    inner: dict[str, float] = {}
    for units in stage:
        at = sum(abs(w) * read[name] for name, w in units.reads.items())
        hidden = at + np.abs(units.offset - units.knots)
        for name, bends in units.writes.items():
            total = float(np.abs(bends) @ hidden)
            entries[name] = entries.get(name, 0) + units.count
            size[name] = size.get(name, 0.0) + total
            inner[name] = inner.get(name, 0.0) + gamma(len(units.reads)) * total
        for name, value in units.constants.items():
            entries[name] = entries.get(name, 0) + 1
            size[name] = size.get(name, 0.0) + abs(value)
    return {
        name: (inner.get(name, 0.0) + gamma(k) * (size[name] + written[name])) * 1.001 + 1e-300
        for name, k in entries.items()
    }
