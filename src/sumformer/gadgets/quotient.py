"""a/b = e^{log(a + c b) − log b} − c for b ∈ [b_lo, b_hi], b_lo > 0, c = 1 − min a/b: two layers, or three deep parts.

With both logarithms within δ and the exponential within δ':  |error| ≤ (1 + max − min of a/b) (e^{2δ} − 1) + δ'.
"""

from __future__ import annotations

from dataclasses import replace
from math import expm1, log

from sumformer.algebra.rounding import shown_up
from sumformer.errors import InputError, RefusedError
from sumformer.gadgets.compose import beside, then
from sumformer.gadgets.elementary import EXP, LOG
from sumformer.gadgets.reading import Reading
from sumformer.gadgets.realisation import realise
from sumformer.gadgets.saw import Prefer
from sumformer.gadgets.units import Gadget

LEAST_SLACK = 2.0**-48


def quotient(
    a: Reading, b: Reading, ratio: tuple[float, float], place: str, tolerance: float, prefer: Prefer = "depth"
) -> Gadget:
    """a/b within the tolerance, where a/b is known to lie in `ratio`; the range of a is not asked for."""
    if not b.lo > 0:
        raise InputError(f"quotient: expected a denominator > 0, got the range [{b.lo}, {b.hi}]")
    spread = 1 + ratio[1] - ratio[0]
    c, delta = 1 - ratio[0], min(tolerance / (5 * spread), 0.15)  # e^{2δ} − 1 ≤ 2.4 δ up to there
    slack = min(1e-9, delta / 64)  # relative, for the rounding of ends and weights
    if slack < LEAST_SLACK:
        least = 320 * spread * LEAST_SLACK
        raise RefusedError(
            f"quotient: {tolerance:.2g} is too fine for float64; {shown_up(least, 2)} is not", reachable=least
        )
    A = b.hi * max(map(abs, ratio))
    a_size, b_size = a.within(-A, A).known_size, b.known_size
    size = None if a_size is None or b_size is None else a_size + abs(c) * b_size
    top = replace(a + b * c, lo=b.lo * (1 - slack), hi=b.hi * spread * (1 + slack), size=size)
    bottom = replace(b, lo=b.lo * (1 - slack), hi=b.hi * (1 + slack), size=b_size)
    over, under = f"{place}.over", f"{place}.under"
    logs = beside(realise(LOG, top, over, delta, prefer), realise(LOG, bottom, under, delta, prefer))
    e = sum(logs.errors) + 2 * slack
    largest = max(abs(log(end)) for t in (top, bottom) for end in (t.lo, t.hi))
    difference = Reading({over: 1.0, under: -1.0}, 0.0, -e, log(spread) + e, 2 * largest + e)
    last = realise(EXP, difference, place, tolerance / 2, prefer)
    both = then(logs, last, (over, under), slope=0.0)  # how the logarithms' errors go on is counted below
    *stages, final = both.stages
    error = spread * expm1(e) * (1 + 1e-9) + last.error
    return Gadget("quotient", (*stages, (*final[:-1], final[-1].plus(place, -c))), error, both.workspace)
