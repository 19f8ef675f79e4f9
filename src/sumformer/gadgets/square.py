"""t² for t ∈ [lo, hi]: the saw network on (t − lo)/(hi − lo).

t² = S² P² + 2 lo S P + lo²,  S = hi − lo,  P = (t − lo)/S ∈ [0, 1];  error one-sided in [0, S² M^{−2L}/4], halved by a
constant. What is linear in P costs nothing.
"""

from __future__ import annotations

import numpy as np

from sumformer.gadgets.piecewise_linear import PiecewiseLinear
from sumformer.gadgets.reading import Reading, require_range
from sumformer.gadgets.saw import Prefer, Shape, choose, chords, saw
from sumformer.gadgets.units import Gadget, Units, units_of

MARGIN = 2.0**-6


def branch(
    P: Reading, coefficients: tuple[float, float, float], shape: Shape, place: str, workspace: str
) -> tuple[Units, ...]:
    """quadratic·P² + linear·P + constant into `place`, P ∈ [0, 1]: one group per layer."""
    quadratic, linear, constant = coefficients
    if shape.layers == 0:  # P² is taken for P: what is left out is (P − P²) ∈ [0, 1/4]
        if not (linear + quadratic or constant):
            return ()
        line = PiecewiseLinear(np.zeros(1), np.array([linear + quadratic]), constant)
        return (units_of(P, {place: line}),)
    square, wave = chords(shape.pieces), saw(shape.pieces)
    groups = []
    for layer in range(shape.layers):
        scale = quadratic * float(shape.pieces) ** (-2 * layer)
        first, last = layer == 0, layer == shape.layers - 1
        out = square.scaled(scale).plus_slope(linear if first else -scale, constant if first else 0.0)
        functions = {place: out}
        if not last:
            functions[workspace] = wave if first else wave.plus_slope(-1.0)
        elif not first:
            functions = {place: _earlier(out, 0.0), workspace: _earlier(wave.scaled(0.0), -1.0)}
        groups.append(units_of(P if first else Reading({workspace: 1.0}), functions))
    return tuple(groups)


def _earlier(p: PiecewiseLinear, slope: float) -> PiecewiseLinear:
    """P + slope·t for t ≥ −MARGIN, by one knot more: a workspace is cleared even where an error left it below 0."""
    knots, bends = np.append(-MARGIN, p.knots), np.append(slope, p.bends)
    return PiecewiseLinear(knots, bends, p.start - slope * MARGIN)


def square(t: Reading, place: str, tolerance: float, prefer: Prefer) -> Gadget:
    """t² within the tolerance."""
    require_range(t)
    S, lo = t.hi - t.lo, t.lo
    shape = choose(2 * tolerance / S**2, prefer, len(t.weights))
    error = S**2 * shape.error / 2
    groups = branch((t - lo) / S, (S**2, 2 * lo * S, lo**2 - error), shape, place, f"{place}'")
    workspace = (f"{place}'",) if shape.layers > 1 else ()
    return Gadget("square", tuple((group,) for group in groups), error * (1 + 2.0**-40), workspace)
