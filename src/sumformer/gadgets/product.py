"""a·b = A B (p² − q²) + linear,  p, q = ((a − a_0)/A ± (b − b_0)/B)/2 ∈ [−1, 1]:  two squares, side by side.

a ∈ a_0 ± A, b ∈ b_0 ± B. Both squares err to one side, so their difference errs by one of them: |error| ≤ A B M^{−2L}.
What is linear in a and b is linear in p and q and costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from sumformer.gadgets.identity import identity
from sumformer.gadgets.saw import Prefer, choose
from sumformer.gadgets.square import branch
from sumformer.gadgets.units import Gadget, Units

Range = tuple[float, float]
Reads = tuple[Mapping[str, float], float]
"""⟨reads, z⟩ + offset."""


def product(a: Reads, b: Reads, a_range: Range, b_range: Range, place: str, tolerance: float, prefer: Prefer) -> Gadget:
    """a·b within the tolerance; with a tolerance ≥ A B only the linear part is left."""
    (a0, A), (b0, B) = (((hi + lo) / 2, (hi - lo) / 2) for lo, hi in (a_range, b_range))
    names = {**a[0], **b[0]}
    if tolerance >= A * B:
        return _linear(a, b, a_range, b_range, place)
    shape = choose(tolerance / (4 * A * B), prefer, len(names))
    stages: list[list[Units]] = [[] for _ in range(max(1, shape.layers))]
    for sign in (1.0, -1.0):
        reads = {n: a[0].get(n, 0.0) / (4 * A) + sign * b[0].get(n, 0.0) / (4 * B) for n in names}
        reads = {n: w for n, w in reads.items() if w}
        offset = (a[1] - a0) / (4 * A) + sign * (b[1] - b0) / (4 * B) + 0.5
        slope = b0 * A + sign * a0 * B  # of p, or of q
        quadratic = sign * 4 * A * B
        constant = -slope + (a0 * b0 if sign > 0 else 0.0)
        groups = branch(
            reads,
            offset,
            quadratic,
            2 * slope - quadratic,
            constant,
            shape,
            place,
            f"{place}{'+' if sign > 0 else '-'}",
        )
        for layer, group in enumerate(groups):
            stages[layer].append(group)
    workspace = (f"{place}+", f"{place}-") if shape.layers > 1 else ()
    kept = tuple(tuple(stage) for stage in stages if stage)
    return Gadget("product", kept, 4 * A * B * shape.error * (1 + 2.0**-40), workspace)


def _linear(a: Reads, b: Reads, a_range: Range, b_range: Range, place: str) -> Gadget:
    """a_0 b + b_0 a − a_0 b_0: what is left out, (a − a_0)(b − b_0), is at most A B."""
    (a0, A), (b0, B) = (((hi + lo) / 2, (hi - lo) / 2) for lo, hi in (a_range, b_range))
    reads = {n: b0 * a[0].get(n, 0.0) + a0 * b[0].get(n, 0.0) for n in {**a[0], **b[0]}}
    offset = b0 * a[1] + a0 * b[1] - a0 * b0
    size = abs(b0) * max(map(abs, a_range)) + abs(a0) * max(map(abs, b_range)) + abs(a0 * b0)
    lo = a0 * b0 - abs(b0) * A - abs(a0) * B - 1e-12 * size
    reads = {n: w for n, w in reads.items() if w}
    stages = identity(reads, offset, lo, {place: 1.0}).stages if reads else ()
    return Gadget("product", stages, A * B * (1 + 2.0**-40))
