"""Slopes of mixtures over tokens, Σ_j p_j e(x', y_j) with any p_j ≥ 0, Σ_j p_j = 1, and of weighted means.

What a mixture moves by lies in the hull over y, but for what its own tokens add: of either sign, at most the largest
Σ_c r_c |∂_{y_c} e|, which becomes a variable of its own. For q = Σ w a/Σ w, with p_j = w_j/Σ w,
  dq = Σ_j p_j g_j,   g = da + (a − q) d log w,
and as Σ_j p_j (a_j − q) = 0 also |Σ_j p_j (a_j − q) ℓ_j| ≤ osc(a)/2 · max |ℓ|, and ≤ osc(a)/4 · osc(ℓ).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.checker.grid.slope import GROW, Slope, SlopeOperations, times
from sumformer.certificates.checker.grid.weighted_mean import Column, WeightedMean
from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, from_fraction, meet
from sumformer.certificates.checker.token_values import Known
from sumformer.certificates.checker.verification import Unproved

_REAL = IntervalOperations()
_HALF, _QUARTER = (from_fraction(Fraction(1, k)) for k in (2, 4))


def mixed(ops: SlopeOperations, e: Slope, d: int, place: int) -> Slope:
    """Of e on (cells of x, cells of y); what its tokens add is variable `place`."""
    gradient = without_y(over_y(e.gradient, -2), d, place, by_tokens(ops, e, d))
    return ops.made(over_y(e.value, -1), gradient, worst(e.length))


def sharpened(
    mean: WeightedMean,
    ops: SlopeOperations,
    own: list[Slope],
    y: list[Slope],
    known: Known[Slope],
    place: int,
) -> list[Slope]:
    """By the quotient rule, or by the formulas above where they give less."""
    top, bottom = (known[part] * (mean.width // part.width) for part in (mean.top, mean.bottom))
    plain = [ops.div(a, b) for a, b in zip(top, bottom, strict=True)]
    trial = SlopeOperations(1, ops.weights)  # marks what is lost for this rule only
    try:
        columns = mean.columns(trial, own, y, known)
    except Unproved:
        return plain
    return [
        _sharper(quotient, trial, column, len(own), place + k)
        for k, (quotient, column) in enumerate(zip(plain, columns, strict=True))
    ]


def _sharper(plain: Slope, ops: SlopeOperations, column: Column, d: int, place: int) -> Slope:
    w, log, a = column
    range_ = over_y(a.value, -1)
    q = meet(range_, plain.value)
    g = ops.add(a, ops.mul(ops.fixed(_REAL.sub(a.value, q)), log))
    spread = _REAL.sub(Interval(range_.hi, range_.hi), Interval(range_.lo, range_.lo)).hi
    half, quarter = (_REAL.mul(Interval(spread, spread), part).hi for part in (_HALF, _QUARTER))
    tokens = np.minimum(by_tokens(ops, g, d), (by_tokens(ops, a, d) + times(half, by_tokens(ops, log, d))) * GROW)
    tokens = np.fmin(tokens, times(plain.gradient.magnitude[..., 2 * d :], ops.weights[2 * d :]).sum(axis=-1) * GROW)
    gradient = meet(over_y(g.gradient, -2), _by_spread(a.gradient, log.gradient, quarter))
    gradient = _where(np.arange(len(ops.weights)) < d, meet(gradient, plain.gradient), gradient)  # ∂/∂x' is the same
    length = np.minimum(worst(g.length), (worst(a.length) + times(half, worst(log.length))) * GROW)
    found = ops.made(q, without_y(gradient, d, place, tokens), length)
    sign = over_y(w.value, -1)
    lost = np.atleast_2d(ops.bad).any(-1, keepdims=True) | (q.lo > q.hi)
    sure = ((sign.lo > 0) | (sign.hi < 0)) & np.isfinite(sign.magnitude) & ~lost
    better = sure & (found.length < plain.length)
    return Slope(
        _where(sure, q, plain.value),
        _where(better[..., None], found.gradient, plain.gradient),
        np.where(better, found.length, plain.length),
    )


def _by_spread(a: Interval, log: Interval, quarter: Floats) -> Interval:
    """Σ p (∂a + (a − q) ∂log w), variable by variable: hull(∂a) ± osc(a)/4 · osc(∂log w)."""
    hull = over_y(log, -2)
    osc = np.where(hull.lo == hull.hi, 0.0, _REAL.sub(hull, hull).hi)
    most = times(osc, np.asarray(quarter)[..., None]) * GROW
    still = most == 0
    base = over_y(a, -2)
    moved = _REAL.add(base, Interval(-most, most))
    return Interval(np.where(still, base.lo, moved.lo), np.where(still, base.hi, moved.hi))


def piece(v: Slope, place: int, of: int) -> Slope:
    """Where its value lies in one of so many equal pieces of its range; a range without bounds is one."""
    low, high = v.value.lo, v.value.hi
    side = high / of - low / of
    ends = (low + side * place, low + side * (place + 1))
    within = np.isfinite(side)
    lower = np.where(within & (place > 0), np.maximum(low, np.nextafter(ends[0], -np.inf)), low)
    upper = np.where(within & (place < of - 1), np.minimum(high, np.nextafter(ends[1], np.inf)), high)
    return Slope(Interval(lower, upper), v.gradient, v.length)


def either(a: Slope, b: Slope) -> Slope:
    """What holds for one of both."""
    gradient = Interval(np.minimum(a.gradient.lo, b.gradient.lo), np.maximum(a.gradient.hi, b.gradient.hi))
    value = Interval(np.minimum(a.value.lo, b.value.lo), np.maximum(a.value.hi, b.value.hi))
    return Slope(value, gradient, np.maximum(a.length, b.length))


def by_tokens(ops: SlopeOperations, e: Slope, d: int) -> Floats:
    """max_y Σ_c r_c |∂_{y_c} e|."""
    part = e.gradient.magnitude[..., d : 2 * d]
    return worst(times(part, ops.weights[d : 2 * d]).sum(axis=-1) * GROW)


def without_y(gradient: Interval, d: int, place: int, tokens: Floats) -> Interval:
    """y is bound in the body: what it adds is `tokens` times a variable in [−1, 1]."""
    shape = np.broadcast_shapes(gradient.lo.shape, (*tokens.shape, 1))
    low, high = (np.broadcast_to(end, shape).copy() for end in (gradient.lo, gradient.hi))
    for end in (low, high):
        end[..., d : 2 * d] = 0.0
        end[..., place] = tokens
    return Interval(low, high)


def over_y(v: Interval, axis: int) -> Interval:
    """The hull over y's axis, which keeps length 1; what has no such axis has one value."""
    rows = 2 if axis == -1 else 3
    low, high = (np.reshape(end, (1,) * (rows - np.ndim(end)) + np.shape(end)) for end in (v.lo, v.hi))
    return Interval(low.min(axis=axis, keepdims=True), high.max(axis=axis, keepdims=True))


def worst(length: Floats) -> Floats:
    """max over y's axis, which keeps length 1."""
    result: Floats = np.atleast_2d(length).max(axis=-1, keepdims=True)
    return result


def _where(sure: NDArray[np.bool_], a: Interval, b: Interval) -> Interval:
    return Interval(np.where(sure, a.lo, b.lo), np.where(sure, a.hi, b.hi))
