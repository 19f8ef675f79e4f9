"""M ≥ sup |K| with one variable in a Bernstein ellipse and the others real, by complex intervals on rectangles.

E_ρ = {t : |t + √(t²−1)| ≤ ρ} has half-axes a = (ρ + 1/ρ)/2 and b = (ρ − 1/ρ)/2. Trees have real coefficients, so
|K(t̄)| = |K(t)| and the upper half is enough. Rectangles that meet the half are all evaluated: a finite enclosure on
each proves that K is analytic on the whole filled ellipse, and their maximum is M.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, from_fraction
from sumformer.certificates.checker.rectangle import Rectangle, RectangleOperations, finite_modulus, rectangle
from sumformer.certificates.checker.tree_values import components
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.node import Node
from sumformer.targets.tree import Token

BUDGET = 400_000  # rectangles per ellipse
_REAL = IntervalOperations()


@dataclass(frozen=True)
class Variables:
    """What the kernel's variables 0, 1, … are: (token name, coordinate, centre, radius)."""

    entries: tuple[tuple[str, int, Fraction, Fraction], ...]
    d: int


def maximum_on_ellipse(kernel: Node, variables: Variables, which: int, rho: float, goal: float) -> float:
    """M for variable `which`: cells above `goal` are halved until none is left or the budget is spent.

    A cell is a product of sides, one per variable on [−1, 1] (the real part on [−a, a] for `which`) and the imaginary
    part last; cells that miss the ellipse are left out.
    """
    if not (1 < rho < 1e6):
        raise Unproved(f"expected 1 < ρ < 10^6, got {rho}")
    a, b = (rho + 1 / rho) / 2 * (1 + 1e-12), (rho - 1 / rho) / 2 * (1 + 1e-12)
    count = len(variables.entries)
    low, high = np.full((1, count + 1), -1.0), np.full((1, count + 1), 1.0)
    low[0, which], high[0, which], low[0, -1], high[0, -1] = -a, a, 0.0, b
    settled, spent = 0.0, 0
    while len(low):
        bounds = _modulus(kernel, variables, which, low, high)
        spent += len(low)
        over = bounds > goal
        settled = max(settled, float(bounds[~over].max(initial=0.0)))
        if spent + 2 * int(over.sum()) > BUDGET:
            worst = float(bounds.max())
            if worst == math.inf:
                raise Unproved(f"K is not shown to be analytic for ρ = {rho} in variable {which}")
            return max(settled, worst)
        low, high = _halves(low[over], high[over])
        near = ~_outside(low, high, which, a, b)
        low, high = low[near], high[near]
    return settled


def _outside(low: Floats, high: Floats, which: int, a: float, b: float) -> NDArray[np.bool_]:
    """Whether a rectangle misses the ellipse: its point nearest to 0 on each axis does (with a slack of 1e-9)."""
    left, right = low[:, which], high[:, which]
    x = np.where((left <= 0) & (right >= 0), 0.0, np.minimum(np.abs(left), np.abs(right)))
    outside: NDArray[np.bool_] = (x / a) ** 2 + (low[:, -1] / b) ** 2 > 1 + 1e-9
    return outside


def _halves(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Both halves of every cell along its widest side."""
    rows, widest = np.arange(len(low)), np.argmax(high - low, axis=1)
    middle = (low[rows, widest] + high[rows, widest]) / 2
    first_high, second_low = high.copy(), low.copy()
    first_high[rows, widest], second_low[rows, widest] = middle, middle
    return np.concatenate([low, second_low]), np.concatenate([first_high, high])


def _modulus(kernel: Node, variables: Variables, which: int, low: Floats, high: Floats) -> Floats:
    """An upper bound of |K| on every cell, ∞ where it is not shown to be analytic."""
    ops = RectangleOperations(len(low))
    zero = from_fraction(Fraction(0))
    tokens: dict[str, list[Rectangle]] = {name: [rectangle(zero, zero)] * variables.d for name in ("x", "y")}
    for i, (name, c, centre, radius) in enumerate(variables.entries):
        scale = from_fraction(radius)
        real = _REAL.add(from_fraction(centre), _REAL.mul(scale, Interval(low[:, i], high[:, i])))
        imaginary = _REAL.mul(scale, Interval(low[:, -1], high[:, -1])) if i == which else zero
        tokens[name][c] = rectangle(real, imaginary)

    def leaf(part: Node) -> list[Rectangle] | None:
        return tokens[part.name] if isinstance(part, Token) else None

    value = components(kernel, ops, leaf)[0]
    return finite_modulus(value, ops.bad)


def remainder(maxima: Sequence[float], rhos: Sequence[float], degree: int) -> float:
    """Σ_v Λ^{v−1} · 4 M_v ρ_v^{−N}/(ρ_v − 1), Λ = (2/π) log(N+1) + 1.

    A function bounded by M in E_ρ has Chebyshev coefficients ≤ 2Mρ^{−k}; interpolation at the N+1 zeros of T_{N+1}
    folds each coefficient past N onto one of the first N+1 with factor ±1 or 0, so its error is ≤ 2·Σ_{k>N} 2Mρ^{−k}.
    The tensor interpolant telescopes; each earlier operator has norm ≤ Λ.
    """
    lebesgue = Fraction((2 / math.pi * math.log(degree + 1) + 1) * (1 + 1e-12))
    total = Fraction(0)
    for v, (m, rho) in enumerate(zip(maxima, rhos, strict=True)):
        if not (math.isfinite(m) and math.isfinite(rho) and rho > 1):
            return math.inf
        # exact: in floats ρ^−N may underflow to 0 while M ρ^−N is large
        total += lebesgue**v * 4 * Fraction(m) / Fraction(rho) ** degree / (Fraction(rho) - 1)
    try:
        return math.nextafter(float(total), math.inf)
    except OverflowError:
        return math.inf
