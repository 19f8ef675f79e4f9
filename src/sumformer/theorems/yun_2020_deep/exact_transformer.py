"""The modified network, hardmax and three pieces, in exact arithmetic: any magnitude, no ramps.

d_p(f, g) ≤ cells + tokens in equal cells + the rounding of the written values.
"""

from __future__ import annotations

from dataclasses import dataclass

from sumformer.targets.target import Target
from sumformer.theorems.yun_2020_deep.certified import layers_of, rounding_term, zero_bound
from sumformer.theorems.yun_2020_deep.network import Layers
from sumformer.theorems.yun_2020_deep.plan import Plan
from sumformer.theorems.yun_2020_deep.search import Choice, search, terms


@dataclass(frozen=True)
class ExactTransformer:
    """`layers` maps tokens (batch, n, d) in units of δ, whole numbers or fractions, to values; d_p ≤ `bound`."""

    layers: Layers
    choice: Choice
    bound: float


def exact_transformer(plan: Plan, f: Target, epsilon: float, p: float = 1.0) -> ExactTransformer:
    """Refuses only for the number of layers, never for the size of a number."""
    zero = zero_bound(f, plan.n, p)
    choice = search(f, plan.n, epsilon, p, plan.grid, plan.too_many, zero)
    layers = layers_of(plan, f, choice)
    bound = sum(terms(f, choice, p)) + rounding_term(f, plan.n, p, 2.0**-layers.scale)
    return ExactTransformer(layers, choice, bound)
