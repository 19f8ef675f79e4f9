"""M_v(ρ) = sup |K| with one coordinate in the Bernstein ellipse E_ρ and the others real, enclosed on rectangles.

Rectangles cover the whole ellipse, not only its rim, so that a bound also proves that K is analytic inside. K is real
on the real axis, hence K(z̄) = conj K(z): the upper half is enough.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sumformer.algebra.complex_interval import ComplexInterval
from sumformer.algebra.interval import Interval
from sumformer.algebra.interval import concatenate as concatenate_real
from sumformer.algebra.interval_operations import ComplexIntervalOperations
from sumformer.algebra.rounding import FloatArray
from sumformer.targets import Node
from sumformer.targets.domain import Box
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.theorems.alberti_2023.differences import as_difference
from sumformer.theorems.alberti_2023.half_ellipse import SLACK, HalfEllipse, bisect

ROUNDS = 14
MAX_BOXES = 60_000


def ellipse_maximum(kernel: Node, box: Box, coordinates: tuple[int, ...], variable: int, rho: float) -> float | None:
    """M_v(ρ), or None when K could not be shown analytic and bounded there.

    `variable` counts the x-coordinates of the kernel first, then its y-coordinates.
    """
    region = Region(kernel, box, coordinates, variable)
    return enclosed_maximum(region, HalfEllipse(rho, region.spread), SLACK)


class HalfSet(Protocol):
    """A set of one complex coordinate, Im ≥ 0, and of real ones, that boxes cover."""

    def cover(self, others: int) -> tuple[FloatArray, FloatArray]: ...

    def meets(self, lo: FloatArray, hi: FloatArray) -> NDArray[np.bool_]: ...

    def widths(self, lo: FloatArray, hi: FloatArray) -> FloatArray: ...


def enclosed_maximum(
    region: Region, over: HalfSet, slack: float, rounds: int = ROUNDS, probes: int = 0
) -> float | None:
    """sup |K| over the set, within a factor `slack` of a value that is attained; None where it was not found.

    `probes`: so many boxes, those with the largest bounds, are tried at their middle for such a value.
    """
    lo, hi = over.cover(region.variables - 1)
    best = bound = 0.0  # attained, and enclosed so far
    for _ in range(rounds):
        inside = over.meets(lo, hi)
        lo, hi = lo[inside], hi[inside]
        value = region.evaluate(lo, hi)
        modulus = value.modulus()
        upper, lower = modulus.hi[:, 0], np.where(value.defined[:, 0], modulus.lo[:, 0], 0.0)
        best = max(best, float(lower.max(initial=0.0)))
        if probes and len(lo):
            most = np.argsort(np.where(value.defined[:, 0], upper, np.inf))[-probes:]
            middle = (lo[most] + hi[most]) / 2
            tried = region.evaluate(middle, middle)
            best = max(best, float(np.where(tried.defined[:, 0], tried.modulus().lo[:, 0], 0.0).max()))
        open_ = ~value.defined[:, 0] | ~(upper <= max(slack * best, 1e-300))
        bound = max(bound, float(upper[~open_].max(initial=0.0)))
        if not open_.any():
            return bound
        if 2 * int(open_.sum()) > MAX_BOXES:
            break
        lo, hi = lo[open_], hi[open_]
        width = over.widths(lo, hi)
        few = region.variables <= 2  # halving them in turn is cheaper than choosing
        side = width.argmax(axis=1) if few else _side(region, lo, hi, width)
        lo, hi = bisect(lo, hi, side)
    return None


class Region:
    """K on boxes whose columns are Re and Im of one coordinate, then the other coordinates.

    K(x, y) = k(x − y) is k of one token: z = x − y or y − x is complex in one coordinate and fills E_ρ + [−1, 1] there,
    which is the same for both, and [−2, 2] in the others.
    """

    def __init__(self, kernel: Node, box: Box, coordinates: tuple[int, ...], variable: int) -> None:
        of_difference = as_difference(kernel)
        self.coordinates = coordinates
        if of_difference is None:
            self.kernel, self.box, self.variables, self.spread = kernel, box, 2 * len(coordinates), 0.0
        else:
            self.kernel, self.box, self.variables, self.spread = of_difference, centred(box), len(coordinates), 1.0
        self.variable = variable % self.variables

    def evaluate(self, lo: FloatArray, hi: FloatArray) -> ComplexInterval:
        k, others = len(self.coordinates), 2
        columns: dict[tuple[str, int], ComplexInterval] = {}
        for i in range(self.variables):
            c = self.coordinates[i % k]
            if i == self.variable:
                re, im = _scaled(self.box, c, lo[:, 0], hi[:, 0], True), _scaled(self.box, c, lo[:, 1], hi[:, 1], False)
                z = ComplexInterval(re, im)
            else:
                z = ComplexInterval.from_real(_scaled(self.box, c, lo[:, others], hi[:, others], True))
                others += 1
            columns["x" if i < k else "y", c] = z
        x, y = (_token(self.box, name, columns, len(lo)) for name in "xy")
        return evaluate(self.kernel, ComplexIntervalOperations(), Environment(x=x, y=y))


def centred(box: Box) -> Box:
    """The box moved to 0."""
    return Box(tuple(-r for r in box.radius), box.radius)


def _side(region: Region, lo: FloatArray, hi: FloatArray, width: FloatArray) -> NDArray[np.intp]:
    """Which side to bisect: the one that alone, all others at their middle, spoils the bound most; then the widest."""
    middle = (lo + hi) / 2
    bounds = []
    for side in range(lo.shape[1]):
        low, high = middle.copy(), middle.copy()
        low[:, side], high[:, side] = lo[:, side], hi[:, side]
        value = region.evaluate(low, high)
        bounds.append(np.where(value.defined[:, 0], value.abs_upper()[:, 0], np.inf))
    alone = np.stack(bounds, axis=1)
    worst = alone >= 0.999 * alone.max(axis=1, keepdims=True)
    return np.asarray(np.where(worst, width, 0.0).argmax(axis=1))


def _scaled(box: Box, c: int, lo: FloatArray, hi: FloatArray, shift: bool) -> Interval:
    """centre + radius·t, or radius·t for an imaginary part."""
    value = Interval.from_fraction(box.radius[c]) * Interval(lo, hi)
    return (value + Interval.from_fraction(box.centre[c]) if shift else value)[:, None]


def _token(box: Box, name: str, columns: dict[tuple[str, int], ComplexInterval], size: int) -> ComplexInterval:
    """The token as (boxes, d); coordinates the kernel does not mention stand at the centre."""
    zero = Interval.point(np.zeros((size, 1)))
    re, im = [], []
    for c in range(box.d):
        z = columns.get((name, c))
        re.append(z.re if z is not None else zero + Interval.from_fraction(box.centre[c]))
        im.append(z.im if z is not None else zero)
    return ComplexInterval(concatenate_real(re), concatenate_real(im))


def ellipse_candidates() -> list[float]:
    """Parameters ρ that are tried, from a thin ellipse to a wide one; exact in binary."""
    thin = [1 + k / 512 for k in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)]
    return [*thin, 1.34375, 1.4375, 1.5625, 1.6875, 1.84375, 2.0, 2.25, 2.625, 3.5, 5.5, 9.0, 18.0, 48.0]
