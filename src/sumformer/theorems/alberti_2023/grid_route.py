"""A 4.1, discontinuous proof, for any target with a certified modulus of continuity: error ≤ L_others·δ/2 + rounding.

Σ counts the tokens in each cell by a code of A 2.13; ψ(x, Σ) decodes the others' cells and evaluates the target there.
The own token is known exactly: only the others move, by half a cell.
"""

from __future__ import annotations

from math import ceil, prod

from sumformer.algebra.rounding import fraction_bounds, shown_up
from sumformer.certificates.certificate import OF_A_SUMFORMER, TORCH_FUNCTIONS, ErrorTerm
from sumformer.errors import DomainError, RefusedError
from sumformer.nn.codes import check_code, make_code, smallest_code
from sumformer.nn.grid_sumformer import GridSumformer
from sumformer.targets.lipschitz import LipschitzBound, lipschitz_bound
from sumformer.targets.opaque import OpaqueTarget
from sumformer.targets.target import Target
from sumformer.targets.walk import has_function
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic, refuse_box
from sumformer.theorems.alberti_2023.grid_tables import fill_tables, most_cells, refuse_tokens
from sumformer.theorems.alberti_2023.opaque_route import opaque_route
from sumformer.theorems.alberti_2023.tree_rounding import tree_rounding
from sumformer.theorems.built import ROUNDING_SLACK, SLACK, Built, Estimate

ACCEPT = 0.9  # of ε: leaves room for a checker whose enclosures are a little wider
QUICK = 256  # boxes of an estimate's Lipschitz constant


def grid_route(f: Target | OpaqueTarget, epsilon: float, arithmetic: Arithmetic, code: str | None = None) -> Built:
    """The network with as few cells as ε allows, or a refusal that says which ε the budget of cells allows.

    `code` is one of `nn.codes.CODES`, else the one with the smallest d' in float64.
    """
    if isinstance(f, OpaqueTarget):
        return opaque_route(f, epsilon, arithmetic, code)
    refuse_box(f.box, arithmetic)
    refuse_tokens(f.tokens)
    modulus = lipschitz_bound(f, weights=_moves(f))
    rounding = tree_rounding(f, arithmetic)
    cells = _cells(f, modulus, rounding, epsilon)
    count = (prod(cells), f.tokens.maximum, f.tokens.exact)
    code = smallest_code(*count) if code is None else check_code(code, *count)
    network = GridSumformer(f.source, f.d, f.tokens.maximum, cells, code, arithmetic.name)
    ratio = max(fill_tables(network, f.box, f.positioned), default=0.0)
    bound = modulus.value * ratio * SLACK
    if bound + rounding > epsilon * (1 - 1e-9):
        reason = f"the centres of cells are rounded to {arithmetic.name}, whose numbers are too far apart in this box"
        raise RefusedError(f"route grid cannot reach ε = {epsilon:g}", [reason])
    room = epsilon * (1 - 1e-9) - bound
    parts = (
        ErrorTerm("modulus of continuity at the cells", "enclosed", bound),
        ErrorTerm("rounding", "rounding", max(min(ROUNDING_SLACK * rounding, room), rounding)),
    )
    return Built(
        network=network.eval().requires_grad_(False),
        route="grid",
        why=f"continuous with a certified modulus: the others are read off a grid of {prod(cells)} cells",
        terms=tuple(t for t in parts if t.bound > 0),
        latent_dimension=network.latent_dimension,
        assumptions=(*OF_A_SUMFORMER, *((TORCH_FUNCTIONS,) if has_function(f.expression) else ())),
        constants={
            "cells": cells,
            "code": code,
            "lipschitz": modulus.value,  # when every other token moves by half of each side of the box
            "lipschitz_attained": modulus.attained,
            "cell_radius_over_half_side": ratio,
        },
    )


def grid_estimate(f: Target, epsilon: float, arithmetic: Arithmetic) -> Estimate:
    """Cells, d' and the ε within reach, from a quick Lipschitz constant; nothing is built."""
    try:
        refuse_box(f.box, arithmetic)
        refuse_tokens(f.tokens)
        modulus = lipschitz_bound(f, weights=_moves(f), factor=2.0, boxes=QUICK)
        rounding = tree_rounding(f, arithmetic)
        cells = prod(_cells(f, modulus, rounding, epsilon))
    except (RefusedError, DomainError) as error:
        return Estimate.refused(error)
    n = f.tokens.maximum
    size = make_code(smallest_code(cells, n, f.tokens.exact), cells, n).latent_dimension
    reachable = _reachable(f, modulus, rounding)
    return Estimate(True, f"any modulus of continuity: {cells} cells", size, cells, 0.1, reachable)


def _moves(f: Target) -> list[float]:
    """How far a token may move: half of each side, rounded up; a position is a whole number and keeps its value."""
    half = [fraction_bounds(r)[1] for r in f.box.radius]
    return [*half[:-1], 0.0] if f.positioned else half


def _cells(f: Target, modulus: LipschitzBound, rounding: float, epsilon: float) -> list[int]:
    """The least number of cells along each coordinate whose bound is within ε; one for each position."""
    room = ACCEPT * epsilon - rounding
    most = _most_cells(f)
    free = f.d - f.positioned
    needed = max(1, ceil(SLACK * modulus.value * (1 + 2.0**-20) / room)) if room > 0 else None
    if needed is None or needed > most:
        reachable = _reachable(f, modulus, rounding)
        wanted = "rounding alone exceeds it" if needed is None else f"it would take {needed} cells along each side"
        raise RefusedError(
            f"route grid cannot reach ε = {epsilon:g}",
            [
                f"{wanted}; the budget is {most} along each of {free} sides",
                f"the modulus of the others over half the box is {modulus.value:.4g}",
                f"reachable here: ε = {shown_up(reachable)}",
            ],
            reachable,
        )
    return [needed] * free + [f.tokens.maximum] * f.positioned


def _most_cells(f: Target) -> int:
    """Along each coordinate: what the codes can take."""
    return most_cells(f.tokens, f.d - f.positioned, f.tokens.maximum if f.positioned else 1)


def _reachable(f: Target, modulus: LipschitzBound, rounding: float) -> float:
    return (SLACK * modulus.value * (1 + 2.0**-20) / _most_cells(f) + rounding) / ACCEPT * (1 + 1e-9)
