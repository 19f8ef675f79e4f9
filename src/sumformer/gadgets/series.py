"""g(c + r t) = Σ_{k ≤ N} c_k T_k(t) + rest,  |rest| ≤ 4 M ρ^{−D}/(ρ − 1) + (D + 1) δ + Σ_{N < k ≤ D} |c_k|,  |t| ≤ 1.

g is analytic and |g| ≤ M inside the Bernstein ellipse E_ρ; it is interpolated at a high degree D and cut at N, so that
the crude M costs nothing. δ bounds the rounding of the coefficients. M is enclosed on rectangles that cover the whole
upper half of the ellipse: g(z̄) = conj g(z), and what is bounded everywhere inside is analytic there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, log

import numpy as np

from sumformer.algebra import chebyshev
from sumformer.algebra.complex_interval import ComplexInterval
from sumformer.algebra.interval import Interval
from sumformer.algebra.interval_operations import ComplexIntervalOperations, IntervalOperations
from sumformer.algebra.rounding import FloatArray, sum_up
from sumformer.errors import RefusedError
from sumformer.gadgets.function import left_domain
from sumformer.targets import Environment, Node, evaluate, to_source

MAX_DEGREE = 1024
RHOS = (1.03125, 1.0625, 1.125, 1.25, 1.4375, 1.6875, 2.0, 2.25, 2.625, 3.5, 5.5, 9.0, 18.0, 48.0)
SLACK = 16.0  # rectangles are bisected until the bound is within this factor of an attained value
REST = 2.0**-8  # the part of a tolerance that the remainder at degree D may take
_ROUNDS, _MOST = 16, 8000


@dataclass(frozen=True, eq=False)
class Series:
    """c_0 … c_D of g on centre ± radius; `error` bounds what is not in them."""

    centre: float
    radius: float
    coefficients: FloatArray
    error: float

    def cut(self, budget: float) -> tuple[FloatArray, float]:
        """The shortest c_0 … c_N within the budget, crumbs set to 0, and the proved error."""
        size = np.abs(self.coefficients)
        kept = np.where(size > budget * 2.0**-10 / size.size, self.coefficients, 0.0)
        crumbs = sum_up(np.abs(self.coefficients[kept == 0.0]))
        for n in range(1, kept.size + 1):
            dropped = sum_up(np.abs(kept[n:])) + crumbs + self.error
            if dropped <= budget:
                return kept[:n], dropped * (1 + 2.0**-40)
        raise RefusedError(f"{budget:.2g} is beyond float64 coefficients", reachable=self.error)


def series(g: Node, lo: float, hi: float, tolerance: float) -> Series:
    """The series of g, an expression in x, on [lo, hi], its error well below the tolerance; refused past D = 1024."""
    centre = (lo + hi) / 2
    radius = float(np.nextafter(max(hi - centre, centre - lo), inf))
    wanted = tolerance * REST
    degree, reach = MAX_DEGREE + 1, inf
    for rho, maximum in ellipses(g, centre, radius):
        at = ceil(max(log(4) + log(max(maximum, 1e-300)) - log((rho - 1) * wanted), 0.0) / log(rho)) + 1
        degree = min(degree, at)
        reach = min(reach, chebyshev.ellipse_remainder(maximum, rho, MAX_DEGREE))
    if degree > MAX_DEGREE:
        _require_defined(g, lo, hi)
        name, where = to_source(g), f"[{lo:.4g}, {hi:.4g}]"
        reason = "could not be shown analytic around" if reach == inf else f"needs a degree beyond {MAX_DEGREE} on"
        nearest = "take the shallow realisation, or a range further from the singularity"
        raise RefusedError(
            f"{name} {reason} {where}: no single polynomial is short there; {nearest}",
            reachable=None if reach == inf else reach / REST,
        )
    rest = min(chebyshev.ellipse_remainder(m, rho, degree) for rho, m in ellipses(g, centre, radius))
    t = chebyshev.nodes(degree)
    near = Interval(t - chebyshev.COSINE_ERROR, t + chebyshev.COSINE_ERROR)
    values = evaluate(g, IntervalOperations(), Environment(x=near * radius + centre)).broadcast_to(t.shape)
    middle = values.mid()
    off = float(np.maximum(values.hi - middle, middle - values.lo).max()) * (1 + 2.0**-40)
    delta = chebyshev.coefficient_error(middle.shape, float(np.abs(middle).max()), off)
    error = (rest + (degree + 1) * delta) * (1 + 2.0**-40)
    return Series(centre, radius, chebyshev.coefficients(middle), error)


def _require_defined(g: Node, lo: float, hi: float) -> None:
    ends = np.linspace(lo, hi, 65)
    if not bool(evaluate(g, IntervalOperations(), Environment(x=Interval(ends[:-1], ends[1:]))).defined.all()):
        raise left_domain(g, lo, hi)


@lru_cache(maxsize=256)
def ellipses(g: Node, centre: float, radius: float) -> tuple[tuple[float, float], ...]:
    """(ρ, M) for every ρ tried, up to the first inside which g could not be shown analytic."""
    found: list[tuple[float, float]] = []
    for rho in RHOS:
        maximum = _maximum(g, centre, radius, rho)
        if maximum is None or not maximum < 1e250:
            break
        found.append((rho, maximum))
    return tuple(found)


def _maximum(g: Node, centre: float, radius: float, rho: float) -> float | None:
    """An upper bound of |g| on centre + radius·E_ρ, or None."""
    a, b = ((rho + side / rho) / 2 * (1 + 2.0**-48) for side in (1, -1))
    re, im = np.linspace(-a, a, 9), np.linspace(0.0, b, 5)
    left, low = (s.ravel() for s in np.meshgrid(re[:-1], im[:-1], indexing="ij"))
    right, high = (s.ravel() for s in np.meshgrid(re[1:], im[1:], indexing="ij"))
    attained = bound = 0.0
    for turn in range(_ROUNDS):
        inside = (np.maximum(np.maximum(left, -right), 0) / a) ** 2 + (low / b) ** 2 <= 1 + 1e-9
        left, right, low, high = (s[inside] for s in (left, right, low, high))
        z = ComplexInterval(Interval(left, right) * radius + centre, Interval(low, high) * radius)
        value = evaluate(g, ComplexIntervalOperations(), Environment(x=z)).broadcast_to(left.shape)
        modulus, known = value.modulus(), value.defined
        attained = max(attained, float(modulus.lo[known].max(initial=0.0)))
        open_ = ~known | ~(modulus.hi <= max(SLACK * attained, 1e-300))
        bound = max(bound, float(modulus.hi[~open_].max(initial=0.0)))
        if not open_.any():
            return bound
        if 2 * int(open_.sum()) > _MOST:
            return None
        left, right, low, high = (s[open_] for s in (left, right, low, high))
        if turn % 2:
            middle = (low + high) / 2
            left, right = np.tile(left, 2), np.tile(right, 2)
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        else:
            middle = (left + right) / 2
            low, high = np.tile(low, 2), np.tile(high, 2)
            left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    return None
