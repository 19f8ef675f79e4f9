"""sup |g'| of a function g of the language, near an interval."""

from __future__ import annotations

import math

from sumformer.certificates.checker.compiled.atoms import UP
from sumformer.certificates.checker.interval import Interval
from sumformer.certificates.checker.verification import Unproved


def slope(fn: str, v: Interval, pad: float) -> float:
    """sup |fn'| within `pad` of v."""
    low, high = float(v.lo) - pad, float(v.hi) + pad
    if fn == "exp":
        return math.exp(high) * UP if high < 700 else math.inf
    if fn == "log" and low <= 0:
        raise Unproved("identity: an argument of log may not be positive")
    return 1 / low * UP if fn == "log" else UP
