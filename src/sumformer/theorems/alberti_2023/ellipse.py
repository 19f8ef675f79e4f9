"""M_v(ρ) = sup |K| with one coordinate in the Bernstein ellipse E_ρ and the others real, enclosed on rectangles.

Rectangles cover the whole ellipse, not only its rim, so that a bound also proves that K is analytic inside. K is real
on the real axis, hence K(z̄) = conj K(z): the upper half is enough.
"""

from __future__ import annotations

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
from sumformer.theorems.alberti_2023.half_ellipse import SLACK, HalfEllipse, bisect

ROUNDS = 14
MAX_BOXES = 60_000


def ellipse_maximum(kernel: Node, box: Box, coordinates: tuple[int, ...], variable: int, rho: float) -> float | None:
    """M_v(ρ), or None when K could not be shown analytic and bounded there.

    `variable` counts the x-coordinates of the kernel first, then its y-coordinates.
    """
    ellipse = HalfEllipse(rho)
    lo, hi = ellipse.cover(2 * len(coordinates) - 1)
    best = bound = 0.0  # attained, and enclosed so far
    for _ in range(ROUNDS):
        inside = ellipse.meets(lo, hi)
        lo, hi = lo[inside], hi[inside]
        value = _evaluate(kernel, box, coordinates, variable, lo, hi)
        modulus = value.modulus()
        upper, lower = modulus.hi[:, 0], np.where(value.defined[:, 0], modulus.lo[:, 0], 0.0)
        best = max(best, float(lower.max(initial=0.0)))
        open_ = ~value.defined[:, 0] | ~(upper <= max(SLACK * best, 1e-300))
        bound = max(bound, float(upper[~open_].max(initial=0.0)))
        if not open_.any():
            return bound
        if 2 * int(open_.sum()) > MAX_BOXES:
            break
        lo, hi = lo[open_], hi[open_]
        width = ellipse.widths(lo, hi)
        if len(coordinates) == 1:
            side = width.argmax(axis=1)  # three sides: halving them in turn is cheaper than choosing
        else:
            side = _side(kernel, box, coordinates, variable, lo, hi, width)
        lo, hi = bisect(lo, hi, side)
    return None


def _side(
    kernel: Node,
    box: Box,
    coordinates: tuple[int, ...],
    variable: int,
    lo: FloatArray,
    hi: FloatArray,
    width: FloatArray,
) -> NDArray[np.intp]:
    """Which side to bisect: the one that alone, all others at their middle, spoils the bound most; then the widest."""
    middle = (lo + hi) / 2
    bounds = []
    for side in range(lo.shape[1]):
        low, high = middle.copy(), middle.copy()
        low[:, side], high[:, side] = lo[:, side], hi[:, side]
        value = _evaluate(kernel, box, coordinates, variable, low, high)
        bounds.append(np.where(value.defined[:, 0], value.abs_upper()[:, 0], np.inf))
    alone = np.stack(bounds, axis=1)
    worst = alone >= 0.999 * alone.max(axis=1, keepdims=True)
    return np.asarray(np.where(worst, width, 0.0).argmax(axis=1))


def _evaluate(
    kernel: Node, box: Box, coordinates: tuple[int, ...], variable: int, lo: FloatArray, hi: FloatArray
) -> ComplexInterval:
    """K on the boxes: columns are Re and Im of the complex coordinate, then the real ones."""
    k, others = len(coordinates), 2
    columns: dict[tuple[str, int], ComplexInterval] = {}
    for i in range(2 * k):
        c = coordinates[i % k]
        if i == variable:
            z = ComplexInterval(_scaled(box, c, lo[:, 0], hi[:, 0], True), _scaled(box, c, lo[:, 1], hi[:, 1], False))
        else:
            z = ComplexInterval.from_real(_scaled(box, c, lo[:, others], hi[:, others], True))
            others += 1
        columns["x" if i < k else "y", c] = z
    x, y = (_token(box, name, columns, len(lo)) for name in "xy")
    return evaluate(kernel, ComplexIntervalOperations(), Environment(x=x, y=y))


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
    return [1.03125, 1.0625, 1.125, 1.25, 1.4375, 1.6875, 2.0, 2.25, 2.625, 3.5, 5.5, 9.0, 18.0, 48.0]
