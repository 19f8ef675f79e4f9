"""R_N ≥ sup |g − I_N g|: M_v enclosed on the whole Bernstein ellipse of each variable, all else real.

E_ρ has half-axes a = (ρ + 1/ρ)/2, b = (ρ − 1/ρ)/2. The tree has real coefficients, so the upper half is enough; every
rectangle that meets it is evaluated, and cells above the recorded M are halved until none is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, from_fraction
from sumformer.certificates.checker.rectangle import Rectangle, finite_modulus, rectangle
from sumformer.certificates.checker.token_values import ListedRectangles, token_values
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.domain import Box
from sumformer.targets.node import Node

BUDGET = 40_000  # rectangles per ellipse
_REAL = IntervalOperations()


def remainder(
    own: Sequence[int], others: Sequence[int], m: int, rhos: Sequence[float], maxima: Sequence[float]
) -> float:
    """Σ_v (Π_{w<v} Λ_w) 4 M_v ρ_v^{−N_v}/(ρ_v − 1): the m others' coordinates first, the own ones last.

    Interpolation at the N + 1 zeros of T_{N+1} has norm ≤ Λ = (2/π) log(N+1) + 1.
    """
    d = len(own)
    total, factor = Fraction(0), Fraction(1)
    for v, N in [(d + c, others[c]) for _ in range(m) for c in range(d)] + list(enumerate(own)):
        M, rho = maxima[v], rhos[v]
        if not (math.isfinite(M) and math.isfinite(rho) and rho > 1):
            return math.inf
        total += factor * 4 * Fraction(M) / Fraction(rho) ** N / (Fraction(rho) - 1)
        factor *= Fraction((2 / math.pi * math.log(N + 1) + 1) * (1 + 1e-12))
        total, factor = _shorter(total), _shorter(factor)
    try:
        return math.nextafter(float(total), math.inf)
    except OverflowError:
        return math.inf


def _shorter(q: Fraction) -> Fraction:
    """Not less than q ≥ 0, with a short numerator and denominator."""
    if q == 0:
        return q
    shift = 160 - q.numerator.bit_length() + q.denominator.bit_length()
    scaled = q * Fraction(2) ** shift
    return Fraction(math.ceil(scaled)) / Fraction(2) ** shift


class TokenEllipse:
    """|g| over n tokens of the box, coordinate `c` of the own token (`mine`) or of one other complex, in E_ρ."""

    def __init__(self, expression: Node, box: Box, n: int, mine: bool, c: int, rho: float) -> None:
        if not 1 < rho < 1e6:
            raise Unproved(f"ellipses: expected 1 < ρ < 10^6, got {rho}")
        if not mine and n < 2:
            raise Unproved("ellipses: there is no other token")
        self.expression, self.box, self.n, self.d = expression, box, n, box.d
        self.a, self.b = (rho + 1 / rho) / 2 * (1 + 1e-12), (rho - 1 / rho) / 2 * (1 + 1e-12)
        # columns: the own token's coordinates, those of the other tokens one by one, then the imaginary part
        self.complex = c if mine else box.d + c
        self.rho, self.name = rho, f"{'x' if mine else 'y'}[{c}]"
        self.alike = 1 if mine else 2  # tokens from here on may be exchanged

    def maximum(self, goal: float) -> float:
        """A bound of |g|, ≤ goal if that can be shown within the budget; `Unproved` where |g| > goal somewhere."""
        low, high = np.full((1, self.n * self.d + 1), -1.0), np.full((1, self.n * self.d + 1), 1.0)
        low[0, self.complex], high[0, self.complex], low[0, -1], high[0, -1] = -self.a, self.a, 0.0, self.b
        settled, spent = 0.0, 0
        while len(low):
            bounds = self.bounds(low, high)
            spent += len(low)
            over = ~(bounds <= goal)
            settled = max(settled, float(bounds[~over].max(initial=0.0)))
            if self.exceeds(low[over], high[over], goal):
                raise Unproved(f"ellipses: |f| exceeds {goal:.6g} for ρ = {self.rho} in {self.name}")
            if spent + 2 * int(over.sum()) > BUDGET:
                return max(settled, float(bounds.max()))
            low, high, lost = low[over], high[over], ~np.isfinite(bounds[over])
            if len(low):
                low, high = self.near(*self.halves(low, high, lost))
        return settled

    def exceeds(self, low: Floats, high: Floats, goal: float) -> bool:
        """Whether |g| > goal at the middle of some cell that lies in the ellipse, so that halving cannot help."""
        middle = (low + high) / 2
        inside = (middle[:, self.complex] / self.a) ** 2 + (middle[:, -1] / self.b) ** 2 <= 1
        ops = ListedRectangles(int(inside.sum()))
        values = self.values(ops, middle[inside], middle[inside])
        return any(bool(np.any(~ops.bad & (np.broadcast_to(v.modulus.lo, ops.bad.shape) > goal))) for v in values)

    def near(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Cells that meet the ellipse (with a slack of 1e-9), each set of cells of exchangeable tokens once."""
        left, right = low[:, self.complex], high[:, self.complex]
        x = np.where((left <= 0) & (right >= 0), 0.0, np.minimum(np.abs(left), np.abs(right)))
        meets = (x / self.a) ** 2 + (low[:, -1] / self.b) ** 2 <= 1 + 1e-9
        low, high = low[meets], high[meets]
        count = self.n - self.alike
        if count < 2 or not len(low):
            return low, high
        first, last = self.alike * self.d, self.n * self.d
        cells = np.concatenate(
            [low[:, first:last].reshape(-1, count, self.d), high[:, first:last].reshape(-1, count, self.d)], axis=2
        )
        for k in reversed(range(2 * self.d)):  # a stable sort by each column, the first one last
            order = np.argsort(cells[:, :, k], axis=1, kind="stable")
            cells = np.take_along_axis(cells, order[:, :, None], axis=1)
        low[:, first:last], high[:, first:last] = (
            part.reshape(len(low), -1) for part in (cells[:, :, : self.d], cells[:, :, self.d :])
        )
        both = np.unique(np.concatenate([low, high], axis=1), axis=0)
        return both[:, : low.shape[1]].copy(), both[:, low.shape[1] :].copy()

    def halves(self, low: Floats, high: Floats, lost: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Both halves across the widest of the sides that alone, the others at their middle, leave g widest.

        Where g is `lost`, not shown to be analytic, even with all real coordinates at their middle: a side of the
        complex coordinate.
        """
        rows, sides = np.arange(len(low)), low.shape[1]
        middle = (low + high) / 2
        alone_low, alone_high = np.repeat(middle[None], sides, axis=0), np.repeat(middle[None], sides, axis=0)
        for side in range(sides):
            alone_low[side, :, side], alone_high[side, :, side] = low[:, side], high[:, side]
        bounds = self.spread(alone_low.reshape(-1, sides), alone_high.reshape(-1, sides)).reshape(sides, -1)
        relative = (high - low) / np.array([*([2.0] * (sides - 1)), self.b])
        relative[:, self.complex] /= self.a
        wide = (bounds >= 0.7 * bounds.max(axis=0)).T
        wide[self._lost_by_itself(low, high, lost)] = np.isin(np.arange(sides), (self.complex, sides - 1))
        side = np.argmax(np.where(wide, relative, 0.0), axis=1)
        cut = middle[rows, side]
        first_high, second_low = high.copy(), low.copy()
        first_high[rows, side], second_low[rows, side] = cut, cut
        return np.concatenate([low, second_low]), np.concatenate([first_high, high])

    def _lost_by_itself(self, low: Floats, high: Floats, lost: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Where the complex coordinate alone, the real ones at their middle, is enough to lose g."""
        out, middle = lost.copy(), (low + high) / 2
        first, last = middle[lost], middle[lost].copy()
        for side in (self.complex, -1):
            first[:, side], last[:, side] = low[lost, side], high[lost, side]
        out[lost] = ~np.isfinite(self.bounds(first, last))
        return out

    def spread(self, low: Floats, high: Floats) -> Floats:
        """Width of the enclosure, the largest over components; ∞ where it is not analytic."""
        ops = ListedRectangles(len(low))
        values = self.values(ops, low, high)
        out = np.zeros(len(low))
        for v in values:
            width = np.maximum(v.re.hi - v.re.lo, v.im.hi - v.im.lo)
            out = np.maximum(out, np.where(ops.bad | ~np.isfinite(width), np.inf, width))
        return out

    def bounds(self, low: Floats, high: Floats) -> Floats:
        ops = ListedRectangles(len(low))
        values = self.values(ops, low, high)
        out = np.zeros(len(low))
        for v in values:
            out = np.maximum(out, finite_modulus(v, ops.bad))
        return out

    def values(self, ops: ListedRectangles, low: Floats, high: Floats) -> list[Rectangle]:
        zero = from_fraction(Fraction(0))
        tokens: list[list[Rectangle]] = [[] for _ in range(self.n)]
        for i in range(self.n * self.d):
            t, c = divmod(i, self.d)
            scale = from_fraction(self.box.radius[c])
            real = _REAL.mul(scale, Interval(low[:, i], high[:, i]))
            real = _REAL.add(from_fraction(self.box.centre[c]), real)
            rise = _REAL.mul(scale, Interval(low[:, -1], high[:, -1])) if i == self.complex else zero
            tokens[t].append(rectangle(real, rise))
        return token_values(self.expression, ops, tokens[0], tokens[1:])
