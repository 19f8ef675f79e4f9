"""M ≥ sup |K| with one variable in a Bernstein ellipse and the others real, by complex intervals on rectangles.

E_ρ = {t : |t + √(t²−1)| ≤ ρ} has half-axes a = (ρ + 1/ρ)/2 and b = (ρ − 1/ρ)/2. Trees have real coefficients, so
|K(t̄)| = |K(t)| and the upper half is enough. Rectangles that meet the half are all evaluated: a finite enclosure on
each proves that K is analytic on the whole filled ellipse, and their maximum is M.

A kernel that is a function of differences x_c − y_c (`differences.py`), which have one centre and radius, is one of
radius · (t − s) with t ∈ E_ρ and s ∈ [−1, 1] for one of them (or s − t, which fills the same set), |t − s| ≤ 2 for the
others. That is half as many variables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.checker.bisection import BUDGET, largest
from sumformer.certificates.checker.differences import DifferenceKernel
from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, from_fraction
from sumformer.certificates.checker.rectangle import Rectangle, RectangleOperations, finite_modulus, rectangle
from sumformer.certificates.checker.tree_values import components
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.node import Node
from sumformer.targets.tree import Reduce, Token
from sumformer.targets.walk import postorder

_REAL = IntervalOperations()


@dataclass(frozen=True)
class Variables:
    """What the kernel's variables 0, 1, … are: (token name, coordinate, centre, radius)."""

    entries: tuple[tuple[str, int, Fraction, Fraction], ...]
    d: int


def maximum_on_ellipse(kernel: Node, variables: Variables, which: int, rho: float, goal: float) -> float:
    """M for variable `which`: cells above `goal` are halved until none is left or the budget is spent.

    A cell is a product of sides, one per variable on [−1, 1] (the real part on [−a, a] for `which`) and the imaginary
    part last; cells that miss the ellipse are left out. Of differences, every real side is longer by 1 at either end.
    """
    if not (1.001 <= rho < 1e6):  # closer to 1, ρ − 1/ρ loses digits
        raise Unproved(f"expected 1.001 ≤ ρ < 10^6, got {rho}")
    a, b = (rho + 1 / rho) / 2 * (1 + 1e-12), (rho - 1 / rho) / 2 * (1 + 1e-12)
    differences = _of_differences(kernel, variables)
    count = len(variables.entries) // (2 if differences else 1)
    which %= count  # a difference's variable is x's or y's alike
    more = 1.0 if differences else 0.0  # what s adds at either end
    low, high = np.full((1, count + 1), -1.0 - more), np.full((1, count + 1), 1.0 + more)
    low[0, which], high[0, which], low[0, -1], high[0, -1] = -a - more, a + more, 0.0, b

    def bounds(low: Floats, high: Floats) -> Floats:
        return _modulus(differences or kernel, variables, which, low, high)

    def met(low: Floats, high: Floats) -> NDArray[np.bool_]:
        return ~_outside(low, high, which, a, b, more)

    found = largest((low, high), bounds, goal, BUDGET, met)
    if found == math.inf:
        raise Unproved(f"K is not shown to be analytic for ρ = {rho} in variable {which}")
    return found


def _outside(low: Floats, high: Floats, which: int, a: float, b: float, more: float) -> NDArray[np.bool_]:
    """Whether a rectangle misses the ellipse, moved by up to `more` along the real axis: its point nearest to 0 on each
    axis does (with a slack of 1e-9)."""
    left, right = low[:, which], high[:, which]
    x = np.where((left <= 0) & (right >= 0), 0.0, np.minimum(np.abs(left), np.abs(right)))
    x = np.maximum(x - more, 0.0)
    outside: NDArray[np.bool_] = (x / a) ** 2 + (low[:, -1] / b) ** 2 > 1 + 1e-9
    return outside


def _modulus(kernel: Node | DifferenceKernel, variables: Variables, which: int, low: Floats, high: Floats) -> Floats:
    """An upper bound of |K| on every cell, ∞ where it is not shown to be analytic."""
    ops, differences = RectangleOperations(len(low)), isinstance(kernel, DifferenceKernel)
    zero = from_fraction(Fraction(0))
    tokens: dict[str, list[Rectangle]] = {name: [rectangle(zero, zero)] * variables.d for name in ("x", "y")}
    for i, (name, c, centre, radius) in enumerate(variables.entries[: low.shape[1] - 1]):
        scale = from_fraction(radius)
        real = _REAL.mul(scale, Interval(low[:, i], high[:, i]))
        imaginary = _REAL.mul(scale, Interval(low[:, -1], high[:, -1])) if i == which else zero
        tokens[name][c] = rectangle(real if differences else _REAL.add(from_fraction(centre), real), imaginary)
    if isinstance(kernel, DifferenceKernel):
        value = kernel.value(ops, dict(enumerate(tokens["x"])))
    else:
        value = components(kernel, ops, lambda part: tokens[part.name] if isinstance(part, Token) else None)[0]
    return finite_modulus(value, ops.bad)


def _of_differences(kernel: Node, variables: Variables) -> DifferenceKernel | None:
    """K as a function of x − y, where the variables of x are those of y."""
    half = len(variables.entries) // 2
    x, y = variables.entries[:half], variables.entries[half:]
    if any(a[0] != "x" or b[0] != "y" or a[1:] != b[1:] for a, b in zip(x, y, strict=True)):
        return None
    if any(isinstance(part, Reduce) for part in postorder(kernel)):
        return None
    try:
        return DifferenceKernel.of(kernel, variables.d)
    except Unproved:
        return None


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
