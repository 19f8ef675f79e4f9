"""Y Theorems 2 and 3: for f continuous and ε > 0 there is g ∈ 𝒯^{2,1,4} with d_p(f, g) ≤ ε; with positions, for any f.

d_p(f, g) = (∫_{𝒳ⁿ} ‖f(X) − g(X)‖_p^p dX)^{1/p},  1 ≤ p < ∞,  𝒳 the box.

Theorem 2: g(X) = 0 where a token lies outside 𝒳, by a ramp or more, or two lie in one cell. Theorem 3, with positions,
says nothing of g there, and it is not 0.
"""

from __future__ import annotations

from sumformer.errors import InputError
from sumformer.nn.patterns.pattern import Pattern
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import ARITHMETICS, Arithmetic
from sumformer.theorems.built import Built
from sumformer.theorems.yun_2020_deep.certified import Progress, certified
from sumformer.theorems.yun_2020_deep.plan import Plan, equivariant_plan, position_plan


def deep_transformer(
    f: Target,
    epsilon: float,
    arithmetic: Arithmetic | None = None,
    route: str | None = None,
    *,
    p: float = 1.0,
    pattern: Pattern | None = None,
    positions: bool = False,
    fused: bool = False,
    progress: Progress = None,
) -> Built:
    """The deep, narrow Transformer for f on exactly n ≥ 2 tokens, with the terms of d_p(f, g) ≤ ε."""
    if pattern is not None:
        raise InputError(
            "construct: a deep-transformer attends to all tokens; with a pattern it is a sparse-transformer"
        )
    n = exact_tokens(f, "deep-transformer", arithmetic, route)
    return certified(deep_plan(f, n, positions), f, epsilon, p, "deep-transformer", fused, progress)


def deep_plan(f: Target, n: int, positions: bool = False) -> Plan:
    """Y Theorem 3 where f knows the places of the tokens, or the network shall; else Y Theorem 2."""
    return position_plan(n, f.input_box.d) if positions or f.positioned else equivariant_plan(n, f.d)


def exact_tokens(f: Target, architecture: str, arithmetic: Arithmetic | None, route: str | None) -> int:
    """n, with everything that does not fit said at once."""
    wrong = []
    if not f.tokens.exact or f.tokens.minimum < 2:
        wrong.append(f"one number of tokens n ≥ 2 (as n=3, or --tokens 3), got {f.tokens.formula()}")
    if arithmetic is not None and arithmetic.name != ARITHMETICS["float64"].name:
        wrong.append(f"dtype float64, got {arithmetic.name}")
    if route is not None:
        wrong.append(f"no route, which is a Sumformer's, got {route!r}")
    if wrong:
        raise InputError(f"construct: a {architecture} takes " + "; ".join(wrong))
    return f.tokens.minimum
