"""Rounding of the features T_β(v), of their sums over tokens, and of V_t = Σ_α T_α(u)·[A (p_t ⊛ Σ/n)]_α.

All bounds are relative to Σ_j |b(y_j)|/n, which is what `mean |b|` stands for.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm, prod
from typing import Protocol

import numpy as np

from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.network import Network, Polynomial, Term
from sumformer.certificates.checker.upward import times


def combine(*parts: float) -> float:
    """Π (1 + δ_i) − 1 without cancellation."""
    out = 0.0
    for part in parts:
        out = out + part + out * part
    return out


def point_error(a: Arithmetic, centre: Fraction, radius: Fraction) -> float:
    """|t̂ − t| for t̂ = clamp(fl(fl(z − ĉ)·r̂)), t = (z − c)/r ∈ [−1, 1]; r̂ is the stored 1/r.

    t̂ = ((z − c) + (c − ĉ))/r · (1+δ₁)(1+δ₂)(1+δ₃) before clamping, with c − ĉ and δ₂ = r·r̂ − 1 known; clamping
    moves t̂ towards t. Underflow adds tiny/r and tiny.
    """
    r = float(radius)
    shift = a.constant_error(centre) / r
    relative = combine(a.u, a.u, a.constant_error(1 / radius) * r)
    return relative + shift * (1 + relative) + 2 * a.tiny * (1 + 1 / r)


def table_error(a: Arithmetic, centre: Fraction, radius: Fraction, degree: int) -> Floats:
    """τ_k ≥ |T̂_k − T_k(t)|, 0 ≤ k ≤ degree.

    |T_k(t̂) − T_k(t)| ≤ k²|t̂ − t| on [−1, 1]. The recurrence T̂_{k+1} = fl(fl(2t̂ T̂_k) − T̂_{k−1}) has local errors
    ≤ ε = u(2 + 1)(1 + largest error) + 2·tiny, propagated by the second-kind polynomials, |U_m| ≤ m + 1: after k
    steps Σ_{j=2}^k (k − j + 1) ε = ε·k(k−1)/2.
    """
    k = np.arange(degree + 1, dtype=np.float64)
    steps = k * (k - 1) / 2
    growth = 3 * a.u * float(steps.max())
    if growth > 0.25:
        return np.full(degree + 1, np.inf)
    largest = growth / (1 - growth) * (1 + 1e-9) + 1e-30
    local = 3 * a.u * (1 + a.u) * (1 + largest) + 2 * a.tiny
    return k**2 * point_error(a, centre, radius) + steps * local


class Rounding(Protocol):
    """What the proof asks of the sums of a network, whatever its features are."""

    def series(self, term: Term, size: float, error: float, *, own: bool = False) -> float:
        """A bound of |V̂_t − V_t| where |b| ≤ size, |b̂ − b| ≤ error on every token; `own`: at the own token alone."""
        ...

    def underflow(self, product: int, norm: float, size: float, width: int) -> float:
        """What underflow adds to it, for ‖p‖₁ ≤ norm and a p ⊛ Σ of `width` entries."""
        ...

    def overflows(self, product: int, norm: float, size: float) -> bool:
        """Whether some intermediate number of the sums may leave the range of the arithmetic."""
        ...


@dataclass(frozen=True)
class FeatureRounding:
    """The rounding of N's sums: `net` in `arithmetic`, coefficient matrices `weights`, at most `tokens` tokens.

    Sums of parts are added to each other `merges` deep.
    """

    net: Network
    arithmetic: Arithmetic
    weights: tuple[Floats, ...]
    tokens: int
    merges: int = 0

    def table_error(self, c: int, degree: int) -> Floats:
        """τ_k of coordinate c, 0 ≤ k ≤ degree."""
        return table_error(self.arithmetic, self.net.centre[c], self.net.radius[c], degree)

    def tree_depth(self) -> int:
        """Additions above one token: in a group any order, group − 1, on every level that n tokens need.

        Zeros that fill up a group are added exactly, so n tokens never cost more than n − 1 roundings. Each part of
        a merged sum is such a tree, of no more tokens.
        """
        levels, reach = 1, self.net.group
        while reach < self.tokens:
            levels, reach = levels + 1, reach * self.net.group
        return min(self.tokens - 1, levels * (self.net.group - 1)) + self.merges

    @cached_property
    def masses(self) -> tuple[float, ...]:
        """S_g = Σ |A_g|."""
        return tuple(float(np.abs(A).sum()) * (1 + 1e-12) for A in self.weights)

    def series(self, term: Term, size: float, error: float, *, own: bool = False) -> float:
        """A bound of |V̂_t − V_t| where |b| ≤ size, |b̂ − b| ≤ error on every token (or size 1 and error relative).

        V_t = Σ_{α,β} Π_g A_g[α_g, β_g] · T_α(u) · Σ_index w · mean(b T_index(v)), Σ|w| ≤ ‖p‖₁. Relative errors of one
        summand: T̂ factors Π(1 + τ), b̂, and one γ_k for all roundings on its way: the feature's product (d), how often
        the token counts (3: that number, its product, all of them together), the tree, the division by n, the stored
        weight w (2u), its product and the sum over `width` entries, per kernel the two contractions (x_size + y_size)
        and the products of x-tables. `own` is the same at the own token alone: no tree.
        Without kernels the constant of p meets only T_0, which in channel 1 is the number 1 itself: it costs the last
        roundings alone.
        """
        a, product, polynomial = self.arithmetic, term.product, term.polynomial
        if not a.u:
            return 0.0
        degrees = [max((gamma[c] for gamma, _ in polynomial), default=0) for c in range(self.net.d)]
        mass, drift, roundings = 1.0, 0.0, self.net.d + 2 + (0 if own else self.tree_depth() + 3) + 1
        roundings += a.count_roundings(self.tokens)
        used: set[int] = set()
        for g in self.net.products[product].kernels:
            kernel = self.net.kernels[g]
            used |= set(kernel.coordinates)
            kernel_mass, kernel_drift = self.masses[g], self._drift(g, degrees)
            drift = float(times(drift, kernel_mass + kernel_drift) + times(mass, kernel_drift))
            mass = float(times(mass, kernel_mass))
            roundings += sum(kernel.shape) + len(kernel.coordinates)
        for c in set(range(self.net.d)) - used:
            tau = float(self.table_error(c, degrees[c])[-1])
            drift += (mass + drift) * tau
        width = width_of(polynomial)
        norm = norm_of(polynomial)
        last = width + 4
        gamma = a.gamma(roundings + last)
        both = (size + error) * (mass + drift)
        lost = error * (mass + drift) + size * drift + both * gamma
        total = norm * lost
        if self.net.channels[term.channel].is_one and not self.net.products[product].kernels:
            summed = norm_of(tuple(entry for entry in polynomial if any(entry[0])))
            total = summed * lost + norm * a.gamma(last)
        return total + self.underflow(product, norm, size + error, width) + self.weak(term, size + error, width)

    def weak(self, term: Term, size: float, width: int) -> float:
        """Weights of p ⊛ Σ below the normal numbers are stored within `tiny`, and meet features and Π S_g.

        Every weight is a multiple of what divides all of p, over 2^d.
        """
        if least_weight(term.polynomial) / 2**self.net.d >= 2 * self.arithmetic.tiny:
            return 0.0
        reach = prod(1 + self.masses[g] for g in self.net.products[term.product].kernels)
        return 2 * self.arithmetic.tiny * reach * width * size

    def _drift(self, g: int, degrees: list[int]) -> float:
        """Σ |A_{αβ}| (Π_c (1 + τ_{α_c})(1 + τ_{β_c + γ_c}) − 1): features of p ⊛ Σ reach degree β + γ."""
        kernel = self.net.kernels[g]
        x, y = np.zeros(1), np.zeros(1)
        for c, x_degree, y_degree in zip(kernel.coordinates, kernel.x_degrees, kernel.y_degrees, strict=True):
            x = _outer(x, self.table_error(c, x_degree))
            y = _outer(y, self.table_error(c, y_degree + degrees[c])[degrees[c] :])
        factor = x[:, None] + y[None, :] + x[:, None] * y[None, :]
        return float((np.abs(self.weights[g]) * factor).sum()) * (1 + 1e-12)

    def underflow(self, product: int, norm: float, size: float, width: int) -> float:
        """Every elementary result may be off by `tiny`, times what it is still multiplied by, twice over for safety.

        d + 4 results make a feature, which meets the weights of p (‖p‖₁) and Π S_g; 2 make each of the `width` entries
        of p ⊛ Σ, which meet Π S_g; and each product with a coefficient meets |q| ≤ ‖p‖₁·size and the other S_g.
        """
        kernels = [self.net.kernels[g] for g in self.net.products[product].kernels]
        reach = prod(1 + self.masses[g] for g in self.net.products[product].kernels)
        products = sum(k.shape[0] * (k.shape[1] + len(k.coordinates)) for k in kernels) * max(
            1, prod(k.shape[0] for k in kernels)
        )
        each = (self.net.d + 4) * norm * (1 + size) + 2 * (width + 2) + products * (1 + norm * size)
        return 2 * self.arithmetic.tiny * reach * each

    def overflows(self, product: int, norm: float, size: float) -> bool:
        """Whether some intermediate number of the sums may leave the range of the arithmetic."""
        reach = prod(1 + self.masses[g] for g in self.net.products[product].kernels)
        return not 8 * size * (self.tokens + (1 + norm) * reach) < self.arithmetic.huge


def norm_of(polynomial: Polynomial) -> float:
    """‖p‖₁ in Chebyshev coefficients, rounded up."""
    return float(sum(abs(weight) for _, weight in polynomial)) * (1 + 1e-12)


def width_of(polynomial: Polynomial) -> int:
    """How many entries p ⊛ Σ has: T_γ T_β has 2 for each coordinate of γ."""
    return max(1, sum(1 << sum(g > 0 for g in gamma) for gamma, _ in polynomial))


def least_weight(polynomial: Polynomial) -> Fraction:
    """The largest rational of which all coefficients are whole multiples; 1 where there are none."""
    found = [weight for _, weight in polynomial if weight]
    if not found:
        return Fraction(1)
    below = lcm(*(w.denominator for w in found))
    return Fraction(gcd(*(int(w * below) for w in found)), below)


def _outer(a: Floats, b: Floats) -> Floats:
    """(1 + a_i)(1 + b_j) − 1, flattened in C order."""
    result: Floats = (a[:, None] + b[None, :] + a[:, None] * b[None, :]).ravel()
    return result
