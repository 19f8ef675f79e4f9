"""A 4.1 for targets made of sums: decompose, interpolate what is mixed, cut as far as ε allows, count everything.

f(X)_i = h(x_i, Σ_j k_1(x_i, x_j), …) with analytic k; polynomials written with sums are the case without interpolation
(route *exact*: the error is rounding only). d' and the bound do not depend on n for means and ratios.
"""

from __future__ import annotations

from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.interpolation import Studies
from sumformer.theorems.alberti_2023.plan import Plan, make_plan
from sumformer.theorems.alberti_2023.planned import Planned, planned, planned_or_own


def sums_route(
    target: Target,
    epsilon: float,
    arithmetic: Arithmetic,
    *,
    own_token: bool = False,
    studies: Studies | None = None,
) -> Planned[Plan]:
    """As `planned`, with Chebyshev features."""
    return planned(target, epsilon, arithmetic, make_plan, own_token=own_token, studies=studies)


def sums_or_own(target: Target, epsilon: float, arithmetic: Arithmetic) -> Planned[Plan]:
    """As `planned_or_own`, with Chebyshev features."""
    return planned_or_own(target, epsilon, arithmetic, make_plan)
