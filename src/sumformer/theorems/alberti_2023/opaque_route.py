"""The discontinuous proof for a function without a formula: error ≤ L·δ/2, L *assumed*; its values are the target."""

from __future__ import annotations

from math import ceil, prod

from sumformer.algebra.rounding import fraction_bounds, shown_up
from sumformer.certificates.certificate import COUNTED_IN_THE_BOX, ErrorTerm
from sumformer.errors import RefusedError
from sumformer.nn.codes import check_code, smallest_code
from sumformer.nn.opaque_grid_sumformer import OpaqueGridSumformer
from sumformer.targets.opaque import OpaqueTarget
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.grid_tables import fill_tables, most_cells, refuse_tokens
from sumformer.theorems.built import Built

ACCEPT = 1 - 2.0**-20


def opaque_route(f: OpaqueTarget, epsilon: float, arithmetic: Arithmetic, code: str | None = None) -> Built:
    """Cells whose half side is at most ε/L in every coordinate."""
    refuse_tokens(f.tokens)
    if arithmetic.name != "float64":
        raise RefusedError(
            "a function without a formula is called in float64", [f"its rounding in {arithmetic.name} is not known"]
        )
    half = [fraction_bounds(r)[1] for r in f.box.radius]
    most = most_cells(f.tokens, f.d)
    cells = [max(1, ceil(f.lipschitz * h / (ACCEPT * epsilon))) for h in half]
    if max(cells) > most:
        reachable = f.lipschitz * max(half) / most / ACCEPT * (1 + 1e-9)
        reason = f"it would take {max(cells)} cells along one side, and the budget is {most}"
        raise RefusedError(
            f"route grid cannot reach ε = {epsilon:g}",
            [reason, f"reachable here: ε = {shown_up(reachable)}"],
            reachable,
        )
    count = (prod(cells), f.tokens.maximum, f.tokens.exact)
    code = smallest_code(*count) if code is None else check_code(code, *count)
    network = OpaqueGridSumformer(f.name, f.width, f.d, f.tokens.maximum, cells, code, arithmetic.name)
    radius = max(r * h for r, h in zip(fill_tables(network, f.box), half, strict=True)) * (1 + 2.0**-50)
    bound = f.lipschitz * radius * (1 + 2.0**-50)
    return Built(
        network=network.bind(f).eval().requires_grad_(False),
        route="grid",
        why=f"only its values are known: the others are read off a grid of {prod(cells)} cells",
        terms=(ErrorTerm("assumed modulus of continuity at the cells", "assumed", bound),),
        latent_dimension=network.latent_dimension,
        constants={"cells": cells, "code": code, "assumed_lipschitz": f.lipschitz, "width": f.width},
        assumptions=(*f.assumptions, COUNTED_IN_THE_BOX),
    )
