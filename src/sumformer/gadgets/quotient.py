"""a/b = e^{log(a + c b) − log b} − c for b ∈ [b_lo, b_hi], b_lo > 0, c = 1 − min a/b: two layers, no product.

With both logarithms within δ and the exponential within δ':  |error| ≤ (1 + max − min of a/b) (e^{2δ} − 1) + δ'.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import expm1, log

from sumformer.errors import InputError
from sumformer.gadgets.elementary import EXP, LOG
from sumformer.gadgets.function import function
from sumformer.gadgets.units import Gadget

Reads = tuple[Mapping[str, float], float]
Range = tuple[float, float]


def quotient(a: Reads, b: Reads, b_range: Range, ratio: Range, place: str, tolerance: float) -> Gadget:
    """a/b within the tolerance, where a/b is known to lie in `ratio`."""
    if not b_range[0] > 0:
        raise InputError(f"quotient: expected a denominator > 0, got the range {b_range}")
    spread = 1 + ratio[1] - ratio[0]
    c, delta = 1 - ratio[0], tolerance / (5 * spread)
    names = {**a[0], **b[0]}
    top = {n: a[0].get(n, 0.0) + c * b[0].get(n, 0.0) for n in names}
    slack = 1e-9
    above = (b_range[0] * (1 - slack), b_range[1] * spread * (1 + slack))
    first = function(top, a[1] + c * b[1], *above, {f"{place}+": (LOG, delta)})
    second = function(b[0], b[1], b_range[0] * (1 - slack), b_range[1] * (1 + slack), {f"{place}-": (LOG, delta)})
    e = first.error + second.error + 2 * slack
    third = function({f"{place}+": 1.0, f"{place}-": -1.0}, 0.0, -e, log(spread) + e, {place: (EXP, tolerance / 2)})
    (units,) = third.stages[0]
    constants = {**units.constants, place: units.constants.get(place, 0.0) - c}
    last = type(units)(units.reads, units.offset, units.knots, units.writes, constants)
    error = spread * expm1(e) * (1 + 1e-9) + third.error
    return Gadget("quotient", ((*first.stages[0], *second.stages[0]), (last,)), error, (f"{place}+", f"{place}-"))
