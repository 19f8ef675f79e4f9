"""a/b = e^{log(a + c b) − log b} − c for b ∈ [b_lo, b_hi], b_lo > 0, c = 1 − min a/b: two layers, or three deep parts.

With both logarithms within δ and the exponential within δ':  |error| ≤ (1 + max − min of a/b) (e^{2δ} − 1) + δ'.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import expm1, log

from sumformer.errors import InputError, RefusedError
from sumformer.gadgets.compose import beside, then
from sumformer.gadgets.elementary import EXP, LOG
from sumformer.gadgets.realisation import realise
from sumformer.gadgets.saw import Prefer
from sumformer.gadgets.units import Gadget, Units

Reads = tuple[Mapping[str, float], float]
Range = tuple[float, float]
LEAST_SLACK = 2.0**-48


def quotient(
    a: Reads,
    b: Reads,
    b_range: Range,
    ratio: Range,
    place: str,
    tolerance: float,
    prefer: Prefer = "depth",
    sizes: tuple[float, float] | None = None,
) -> Gadget:
    """a/b within the tolerance, where a/b is known to lie in `ratio`.

    `sizes` bound Σ|weight · z| of a and of b, for a deep realisation where one of them reads several numbers.
    """
    if not b_range[0] > 0:
        raise InputError(f"quotient: expected a denominator > 0, got the range {b_range}")
    spread = 1 + ratio[1] - ratio[0]
    c, delta = 1 - ratio[0], min(tolerance / (5 * spread), 0.15)  # e^{2δ} − 1 ≤ 2.4 δ up to there
    slack = min(1e-9, delta / 64)  # relative, for the rounding of ends and weights
    if slack < LEAST_SLACK:
        least = 320 * spread * LEAST_SLACK
        raise RefusedError(f"quotient: {tolerance:.2g} is too fine for float64; {least:.2g} is not", reachable=least)
    names = {**a[0], **b[0]}
    top = {n: a[0].get(n, 0.0) + c * b[0].get(n, 0.0) for n in names}
    above = (b_range[0] * (1 - slack), b_range[1] * spread * (1 + slack))
    below = (b_range[0] * (1 - slack), b_range[1] * (1 + slack))
    if sizes is None and len(a[0]) == len(b[0]) == 1:
        sizes = b_range[1] * max(map(abs, ratio)) + abs(a[1]), b_range[1] + abs(b[1])
    size = (sizes[0] + abs(c) * sizes[1], sizes[1]) if sizes else (None, None)
    over, under = f"{place}.over", f"{place}.under"
    logs = beside(
        realise(LOG, top, a[1] + c * b[1], *above, over, delta, prefer, argument_size=size[0]),
        realise(LOG, b[0], b[1], *below, under, delta, prefer, argument_size=size[1]),
    )
    e = sum(logs.errors) + 2 * slack
    last = realise(
        EXP,
        {over: 1.0, under: -1.0},
        0.0,
        -e,
        log(spread) + e,
        place,
        tolerance / 2,
        prefer,
        argument_size=2 * max(map(abs, map(log, (*above, *below)))) + e,
    )
    both = then(logs, last, (over, under), slope=0.0)  # how the logarithms' errors go on is counted below
    *stages, final = both.stages
    units = final[-1]
    constants = {**units.constants, place: units.constants.get(place, 0.0) - c}
    moved = Units(units.reads, units.offset, units.knots, units.writes, constants)
    error = spread * expm1(e) * (1 + 1e-9) + last.error
    return Gadget("quotient", (*stages, (*final[:-1], moved)), error, both.workspace)
