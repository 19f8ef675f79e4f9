"""a·b = A B (p² − q²) + linear,  p, q = ((a − a_0)/A ± (b − b_0)/B)/2 ∈ [−1, 1]:  two squares, side by side.

a ∈ a_0 ± A, b ∈ b_0 ± B. Both squares err to one side, so their difference errs by one of them: |error| ≤ A B M^{−2L}.
What is linear in a and b is linear in p and q and costs nothing.
"""

from __future__ import annotations

from math import inf

from sumformer.gadgets.identity import identity
from sumformer.gadgets.reading import Reading, require_range
from sumformer.gadgets.saw import Prefer, choose
from sumformer.gadgets.square import branch
from sumformer.gadgets.units import Gadget, Units


def product(a: Reading, b: Reading, place: str, tolerance: float, prefer: Prefer) -> Gadget:
    """a·b within the tolerance; with a tolerance ≥ A B only the linear part is left."""
    require_range(a, b)
    a0, A, b0, B = a.centre, a.radius, b.centre, b.radius
    if tolerance >= A * B:
        return _linear(a, b, place)
    shape = choose(tolerance / (4 * A * B), prefer, len({**a.weights, **b.weights}))
    stages: list[list[Units]] = [[] for _ in range(max(1, shape.layers))]
    for sign in (1.0, -1.0):
        P = (a - a0) / (4 * A) + (b - b0) * sign / (4 * B) + 0.5  # (p + 1)/2, or (q + 1)/2
        slope = b0 * A + sign * a0 * B  # of p, or of q
        quadratic = sign * 4 * A * B
        coefficients = quadratic, 2 * slope - quadratic, -slope + (a0 * b0 if sign > 0 else 0.0)
        groups = branch(P, coefficients, shape, place, f"{place}{'+' if sign > 0 else '-'}")
        for layer, group in enumerate(groups):
            stages[layer].append(group)
    workspace = (f"{place}+", f"{place}-") if shape.layers > 1 else ()
    kept = tuple(tuple(stage) for stage in stages if stage)
    return Gadget("product", kept, 4 * A * B * shape.error * (1 + 2.0**-40), workspace)


def _linear(a: Reading, b: Reading, place: str) -> Gadget:
    """b_0 a + a_0 b − a_0 b_0: what is left out, (a − a_0)(b − b_0), is at most A B."""
    a0, A, b0, B = a.centre, a.radius, b.centre, b.radius
    size = abs(b0) * a.magnitude + abs(a0) * b.magnitude + abs(a0 * b0)
    lo = a0 * b0 - abs(b0) * A - abs(a0) * B - 1e-12 * size
    t = (a * b0 + b * a0 - a0 * b0).within(lo, inf)
    stages = identity(t, {place: 1.0}).stages if t.weights else ()
    return Gadget("product", stages, A * B * (1 + 2.0**-40))
