"""How large the network is for an ε too small to build it: δ from the certified modulus, then the theorems' counts.

(V n width)^{1/p} L δ/2 + (V C(n,2) δ^d)^{1/p} sup‖f‖_p ≤ ε,   |f(X) − f(X')| ≤ L δ/2 at a distance of δ/2 of the box;
the second term, of tokens in equal cells, is not there with places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, comb, inf, log2

import numpy as np

from sumformer.errors import RefusedError
from sumformer.targets.lipschitz import lipschitz_bound
from sumformer.targets.target import Target
from sumformer.theorems.yun_2020_deep.grid import Grid
from sumformer.theorems.yun_2020_deep.piecewise_constant import integrals, piecewise_constant, volume
from sumformer.theorems.yun_2020_deep.plan import Plan
from sumformer.theorems.yun_2020_deep.search import SHARE, SLACK

FINEST = 2**60


@dataclass(frozen=True)
class FormulaSizes:
    """What would be built for 1/δ = `cells`: attention layers and width exactly, the others from above.

    Token-wise layers are exact but for those of the read-out, parameters but for the same; `largest_weight` is a bound.
    """

    cells: int
    attention_layers: int
    feed_forward_layers: int
    width: int
    parameters: int
    largest_weight: int


def formula_sizes(plan: Plan, f: Target, epsilon: float, p: float = 1.0) -> FormulaSizes:
    """By count, whatever the size; a refusal where f has no certified modulus of continuity."""
    bound = _bound(plan, f, p)
    goal = epsilon * (1 - SHARE) / SLACK
    high = 2
    while bound(high) > goal or not plan.grid(high).inputs:
        high *= 2
        if high > FINEST:
            raise RefusedError(f"ε = {epsilon:g} needs more than 2^60 cells per coordinate", ["a larger ε is met"])
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        enough = bound(middle) <= goal and plan.grid(middle).inputs > 0
        low, high = (low, middle) if enough else (middle, high)
    return _count(plan, plan.grid(high), f)


def _bound(plan: Plan, f: Target, p: float) -> Callable[[int], float]:
    n, size = plan.n, volume(f, plan.n)
    sides = [float(high - low) for low, high in zip(f.input_box.lower, f.input_box.upper, strict=True)]
    sides += [0.0] * f.positioned  # places do not move
    modulus = lipschitz_bound(f, n, wrt="all", weights=sides).value
    found = integrals(piecewise_constant(f, n, 1), p, 2, equal_cells=True)
    largest = np.maximum(np.abs(found.low), np.abs(found.high))
    whole = float((n * (largest**p).sum()) ** (1 / p))
    places = plan.grid(2).places is not None

    def bound(q: int) -> float:
        cells = (size * n * f.width) ** (1 / p) * modulus / (2 * q)
        equal = 0.0 if places else (size * min(1.0, comb(n, 2) / float(q) ** plan.d)) ** (1 / p) * whole
        return float(cells + equal) if np.isfinite(modulus) else inf

    return bound


def _count(plan: Plan, grid: Grid, f: Target) -> FormulaSizes:
    width, counts = max(plan.d, f.width), plan.counts(grid)
    attention = counts["contextual mapping"]
    # The crude bound of what ramps can do, as in `network.growth_bits`: its factors are at most 1 + 2·scale.
    bits = log2(grid.n * grid.q * sum(grid.u)) + attention * log2(1 + 2 * grid.Q) + 80 + 8 * grid.n * log2(grid.Q)
    feed_forward = counts["quantise"] + counts["value mapping"] + f.width * (1 + ceil(bits / 50))
    per_attention, per_token = 8 * width + 2, 8 * width + 4
    ends = plan.d * width + width + f.width * width + f.width + (0 if grid.places is None else grid.n * width)
    return FormulaSizes(
        cells=grid.q,
        attention_layers=attention,
        feed_forward_layers=feed_forward,
        width=width,
        parameters=attention * per_attention + feed_forward * per_token + ends,
        largest_weight=8 * (plan.magnitude(grid).overall + 1),
    )
