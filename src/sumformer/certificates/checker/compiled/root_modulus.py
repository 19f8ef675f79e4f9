"""|√max(s, 0) − √max(t, 0)| for t ≥ lo, |s − t| ≤ e:  ≤ √e,  and ≤ e/(√lo + √max(lo − e, 0)) where lo > 0.

√s − √t = (s − t)/(√s + √t); the quotient falls as t grows, and √s + √t ≥ √|s − t|.
"""

from __future__ import annotations

import numpy as np

from sumformer.certificates.checker.interval import Floats
from sumformer.targets.parser import parse

ROOT = parse("sqrt(max(x, 0))", 1)
_UP = 1 + 1e-12


def root_moves(lo: float, error: Floats | float) -> Floats:
    """The bound, rounded up; what is no number stays none."""
    found = np.sqrt(error)
    if lo > 0:
        found = np.minimum(found, error / (np.sqrt(lo) + np.sqrt(np.maximum(lo - error, 0.0))))
    return np.asarray(np.where(error == 0, 0.0, np.nextafter(found * _UP, np.inf)))
