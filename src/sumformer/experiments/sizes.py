"""One row for each construction and ε: as built where it is, counted by formula where it is too large.

All rows guarantee d_p(f, N) ≤ ε. Sumformers and what is compiled from them bound the supremum, so they are asked for
sup ‖f − N‖ ≤ ε/(V n width)^{1/p}, which implies it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from sumformer.algebra.rounding import shown_up
from sumformer.errors import DomainError, InputError, RefusedError
from sumformer.nn.patterns.pattern import Pattern
from sumformer.targets.target import Target
from sumformer.theorems.constructed import Construction
from sumformer.theorems.construction import construct
from sumformer.theorems.counted_sizes import counted_sizes
from sumformer.theorems.routes import ROUTES
from sumformer.theorems.yun_2020_deep.formula_sizes import formula_sizes
from sumformer.theorems.yun_2020_deep.piecewise_constant import volume
from sumformer.theorems.yun_2020_deep.plan import Plan
from sumformer.theorems.yun_2020_deep.theorem_2 import deep_plan
from sumformer.theorems.yun_2020_sparse.theorem_1 import sparse_plan

Row = dict[str, Any]
Contestant = Callable[[Target, float, float], Row]
AT_MOST = "token-wise layers, weights and largest weight at most"
KEYS = ("attention_layers", "feed_forward_layers", "width", "parameters", "largest_weight")


def contestants(f: Target, pattern: Pattern) -> dict[str, Contestant]:
    """Every construction, by name."""
    n = f.tokens.minimum
    return {
        **{f"sumformer, {route}": partial(_by_supremum, "sumformer", route) for route in ROUTES},
        **{name: partial(_by_supremum, name, None) for name in ("transformer", "linformer", "performer")},
        "deep-transformer": partial(_by_distance, deep_plan(f, n), {}),
        "sparse-transformer": partial(_by_distance, sparse_plan(pattern, n, f.input_box.d), {"pattern": pattern}),
    }


def rows(f: Target, epsilons: list[float], p: float, pattern: Pattern) -> Iterator[Row]:
    """Construction by construction; what is refused says why."""
    if not f.tokens.exact or f.tokens.minimum < 2:
        raise InputError(f"sizes: expected one number of tokens n ≥ 2, as --tokens 3, got {f.tokens.formula()}")
    for name, contestant in contestants(f, pattern).items():
        for epsilon in epsilons:
            try:
                row = contestant(f, epsilon, p)
            except (RefusedError, DomainError, InputError) as refusal:
                row = {"how": "refused", "note": str(refusal).splitlines()[0], **dict.fromkeys(KEYS)}
            yield {"name": name, "epsilon": epsilon, **row}


def _by_supremum(architecture: str, route: str | None, f: Target, epsilon: float, p: float) -> Row:
    sup = epsilon / (volume(f, f.tokens.minimum) * f.tokens.minimum * f.width) ** (1 / p)
    return _built(construct(f, sup, architecture=architecture, route=route), f"sup bound {shown_up(sup)}")


def _by_distance(plan: Plan, options: dict[str, Any], f: Target, epsilon: float, p: float) -> Row:
    architecture = "sparse-transformer" if options else "deep-transformer"
    try:
        made = construct(f, epsilon, architecture=architecture, p=p, options=options)
    except RefusedError:
        counted = formula_sizes(plan, f, epsilon, p)
        numbers = {key: getattr(counted, key) for key in KEYS}
        return {"how": "formula", "note": f"δ = 1/{counted.cells}, {AT_MOST}", **numbers}
    zero = "zero network" if made.certificate.constants.get("zero") else f"δ = 1/{made.certificate.constants['cells']}"
    return _built(made, zero)


def _built(made: Construction, note: str) -> Row:
    counted = counted_sizes(made)
    counted["parameters"] = counted["dense"]
    return {"how": "built", "note": note, **{key: counted[key] for key in KEYS}}
