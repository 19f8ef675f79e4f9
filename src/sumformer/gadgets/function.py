"""g ≈ P on [lo, hi] by one hidden layer: |g − P| ≤ h²/8 · max|g''| on a segment of length h, halved by a shift.

On [a, b]:  P − g ∈ [min d + min(g'', 0)·h²/8,  max d + max(g'', 0)·h²/8],  d the difference at a and at b.
Knots lie denser where g is more curved, √(|g''| / 16 tolerance) of them per unit length; d = −g''·h²/16 at the knots
makes the two sides equal. Several functions may share their knots. g, g', g'' are enclosed on every segment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sumformer.algebra.interval import Interval
from sumformer.algebra.interval_jet import Jet, JetOperations
from sumformer.algebra.rounding import FloatArray
from sumformer.errors import DomainError, RefusedError
from sumformer.gadgets.piecewise_linear import PiecewiseLinear, through
from sumformer.gadgets.reading import Reading, require_range
from sumformer.gadgets.units import Gadget, units_of
from sumformer.targets import Environment, Node, Token, evaluate, to_source

MAX_KNOTS = 400_000
CELLS = 64
_OPERATIONS = JetOperations()


def jet(g: Node, t: Interval) -> Jet:
    """g, g', g'' on the intervals t; g is an expression in x with d = 1."""
    found = evaluate(g, _OPERATIONS, Environment(x=Jet.variable(t)))
    parts = (part.broadcast_to(t.shape) for part in (found.value, found.first, found.second))
    return Jet(*parts)


@dataclass(frozen=True, eq=False)
class Curvature:
    """Cells of [lo, hi] and bounds on them: |g''| for the knots, |g'| for errors carried on, g itself."""

    ends: FloatArray
    second: FloatArray
    slope: float
    range: tuple[float, float]

    def knots_at(self, tolerance: float) -> float:
        """∫ √(|g''| / 16 tolerance), the segments needed."""
        return float(np.sqrt(self.second / (16 * tolerance)) @ np.diff(self.ends))


@lru_cache(maxsize=4096)
def curvature(g: Node, lo: float, hi: float) -> Curvature:
    """Cells halved until |g''| varies by less than a factor of two in each that matters."""
    ends = np.linspace(lo, hi, CELLS + 1)
    for _ in range(40):
        found = jet(g, Interval(ends[:-1], ends[1:]))
        if not bool(found.first.defined.all()):
            require_values(g, found, lo, hi)
        top = np.where(found.second.defined, found.second.abs_upper(), np.inf)
        middle = jet(g, Interval.point((ends[:-1] + ends[1:]) / 2)).second
        share = np.sqrt(top) * np.diff(ends)
        total = share[np.isfinite(share)].sum()
        wide = (top > 2 * middle.abs_upper()) & (share > total / (8 * len(ends))) | ~np.isfinite(top)
        wide &= np.diff(ends) > 1e-9 * (hi - lo)
        if len(ends) > 20_000 or not wide.any():
            break
        ends = np.sort(np.concatenate([ends, (ends[:-1] + ends[1:])[wide] / 2]))
    found = jet(g, Interval(ends[:-1], ends[1:]))
    slope = float(found.first.abs_upper().max())
    value = (float(found.value.lo.min()), float(found.value.hi.max()))
    top = found.second.abs_upper()
    # where g'' is unbounded (√ at 0) a few knots per cell: there the spread of g bounds the error
    top = np.where(np.isfinite(top), top, 1e-3 / np.diff(ends) ** 2)
    return Curvature(ends, top, slope, value)


def require_values(g: Node, found: Jet, lo: float, hi: float) -> None:
    """A function that may be undefined on its range is refused by name."""
    if not bool(found.value.defined.all()):
        raise left_domain(g, lo, hi)


def left_domain(g: Node, lo: float, hi: float, argument: str = "x") -> DomainError:
    """g as a function of its argument x, which is `argument` to whoever wrote it."""
    x = Token("x", 1)
    source = to_source(g, {x: argument})
    text = f"{source} may leave its domain: {argument}, with what it is off by, lies in [{lo:.4g}, {hi:.4g}]"
    softened = to_source(g, {x: "0.01 + …"})
    return DomainError(f"{text}; keep it away from 0, as in {softened}" if lo <= 0 <= hi else text)


@dataclass(frozen=True, eq=False)
class Approximation:
    """P_1, …, P_m over common knots and the proved bound of each |g_k − P_k| on [lo, hi]."""

    functions: tuple[PiecewiseLinear, ...]
    errors: tuple[float, ...]


def approximate(functions: Sequence[Node], lo: float, hi: float, tolerances: Sequence[float]) -> Approximation:
    """Piecewise-linear functions within the tolerances, over as few common knots as the densities ask for."""
    if not lo < hi:
        raise DomainError(f"expected a range lo < hi, got [{lo}, {hi}]")
    shapes = [curvature(g, lo, hi) for g in functions]
    count = max(1.0, sum(s.knots_at(t) for s, t in zip(shapes, tolerances, strict=True)))
    if count > 4 * MAX_KNOTS:
        raise RefusedError(f"{to_source(functions[0])} on [{lo:.3g}, {hi:.3g}] would take {count:.3g} hidden units")
    grid = np.unique(np.concatenate([s.ends for s in shapes]))
    middles = (grid[:-1] + grid[1:]) / 2
    density = np.zeros(len(middles))
    for shape, tolerance in zip(shapes, tolerances, strict=True):
        at = np.clip(np.searchsorted(shape.ends, middles, side="right") - 1, 0, len(shape.second) - 1)
        density = np.maximum(density, np.sqrt(shape.second[at] / (16 * tolerance)))
    mass = np.concatenate([[0.0], np.cumsum(density * np.diff(grid))])
    mass += 1e-6 * max(mass[-1], 1e-300) * (grid - lo) / (hi - lo)  # no flat stretches
    segments = max(1, int(np.ceil(mass[-1] * 1.005)))
    ends = _spread(mass, grid, segments)
    for attempt in range(60):
        found = [_fit(g, ends) for g in functions]
        missed = np.logical_or.reduce([gaps > t for (_, gaps), t in zip(found, tolerances, strict=True)])
        if not missed.any():
            return Approximation(tuple(p for p, _ in found), tuple(float(gaps.max()) for _, gaps in found))
        if len(ends) > MAX_KNOTS:
            break
        worst = max(float((gaps[np.isfinite(gaps)] / t).max()) for (_, gaps), t in zip(found, tolerances, strict=True))
        few = missed.sum() <= max(4, len(missed) // 12)
        if few and (worst > 4 or attempt < 6):  # next to an inflection, or to a singularity: split there
            share = 0.125 if worst > 4 else 0.5
            ends = np.unique(np.concatenate([ends, (ends[:-1] + share * np.diff(ends))[missed]]))
        else:
            segments = int(np.ceil(segments * min(max(1.02, worst**0.5), 1.3))) + (segments < 16)
            ends = _spread(mass, grid, segments)
    raise RefusedError(
        f"{to_source(functions[0])} on [{lo:.3g}, {hi:.3g}] was not reached to {min(tolerances):.2g} "
        f"with {len(ends)} hidden units"
    )


def _spread(mass: FloatArray, grid: FloatArray, segments: int) -> FloatArray:
    """Ends of segments of equal mass."""
    ends = np.interp(np.linspace(0.0, mass[-1], min(segments, MAX_KNOTS) + 1), mass, grid)
    ends[0], ends[-1] = grid[0], grid[-1]
    return np.unique(ends)


def _fit(g: Node, ends: FloatArray) -> tuple[PiecewiseLinear, FloatArray]:
    at = jet(g, Interval.point(ends))
    steps = np.diff(ends)
    around = np.minimum(np.append(steps[0], steps), np.append(steps, steps[-1])) ** 2
    bend = np.where(np.isfinite(at.second.abs_upper()), at.second.mid(), 0.0)
    p = through(ends, at.value.mid() - bend * around / 16)
    return p, gap(g, p, float(ends[-1]))


def gap(g: Node, p: PiecewiseLinear, hi: float) -> FloatArray:
    """sup |g − P| on every segment of [knot_0, hi], proved."""
    ends, values = p.at_knots(hi)
    at = jet(g, Interval.point(ends)).value
    difference = values - at
    over = jet(g, Interval(ends[:-1], ends[1:]))
    square = (Interval.point(ends[1:]) - Interval.point(ends[:-1])).square() * 0.125
    low = np.minimum(difference.lo[:-1], difference.lo[1:])
    high = np.maximum(difference.hi[:-1], difference.hi[1:])
    bent = over.second * square
    with np.errstate(invalid="ignore"):
        low = np.nextafter(low + np.minimum(bent.lo, 0.0), -np.inf)
        high = np.nextafter(high + np.maximum(bent.hi, 0.0), np.inf)
    curved = np.maximum(-low, high)
    # where g'' is unbounded: P and g both lie in the hull of their values on the segment
    spread = np.maximum(over.value.hi, np.maximum(values.hi[:-1], values.hi[1:])) - np.minimum(
        over.value.lo, np.minimum(values.lo[:-1], values.lo[1:])
    )
    return np.asarray(np.where(np.isfinite(curved), np.minimum(curved, spread), spread))


def function(t: Reading, functions: Mapping[str, tuple[Node, float]]) -> Gadget:
    """g_place(t) at every place, each within its tolerance; shared hidden units."""
    require_range(t)
    found = approximate([g for g, _ in functions.values()], t.lo, t.hi, [e for _, e in functions.values()])
    units = units_of(t, dict(zip(functions, found.functions, strict=True)))
    return Gadget("function", ((units,),), max(found.errors), errors=found.errors)
