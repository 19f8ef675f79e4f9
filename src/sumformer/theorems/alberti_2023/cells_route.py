"""A 4.1, discontinuous proof, free of n: Σ counts tokens cell by cell, and ψ runs the target's reductions over cells.

Inside reductions every token, the own one too, is replaced by the centre of its cell; error ≤ modulus + rounding. A
mean, a maximum and a minimum move no more than their bodies do, so the error holds for any number of tokens; a sum in
which n does not cancel moves n times as far, and n is bounded then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, isfinite

import numpy as np

from sumformer.algebra.rounding import fraction_bounds, shown_up, up
from sumformer.certificates.certificate import OF_A_SUMFORMER, TORCH_FUNCTIONS, ErrorTerm
from sumformer.errors import DomainError, RefusedError
from sumformer.nn.cell_sumformer import CellSumformer
from sumformer.targets import reductions, to_source
from sumformer.targets.homogeneity import cancelled
from sumformer.targets.mixture_modulus import mixture_modulus
from sumformer.targets.target import Target
from sumformer.targets.walk import has_function
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic, refuse_box
from sumformer.theorems.alberti_2023.cell_tables import MOST_PAIRS, CellTables
from sumformer.theorems.alberti_2023.cells_rounding import cells_rounding
from sumformer.theorems.alberti_2023.grid_tables import MOST_CELLS, fill_tables
from sumformer.theorems.alberti_2023.guesses import NONE, useful
from sumformer.theorems.built import ROUNDING_SLACK, SLACK, Built, Estimate

ACCEPT = 0.97  # of ε: leaves room for a checker whose enclosures are a little wider
TRIAL = 64  # cells along each side that the first guess is measured with
ATTEMPTS = 6
SECONDS, EACH = 0.1, 1.2e-5  # of a construction, and of a line of its tables


@dataclass(frozen=True)
class _Grid:
    """The cells along each coordinate, d', and how far f moves when tokens move by half a cell."""

    counts: list[int]
    cells: int
    modulus: float


def cells(f: Target, epsilon: float, arithmetic: Arithmetic) -> Built:
    """The network with few cells, or a refusal that says which ε the budget of cells allows."""
    f = _accepted(f, arithmetic)
    grid = _grid(f, _rounding(f, arithmetic), epsilon)
    network = CellSumformer(to_source(f.expression), f.d, grid.counts, arithmetic.name)
    ratios = fill_tables(network, f.box)
    radius = [float(up(fraction_bounds(r)[1] * ratio)) for r, ratio in zip(f.box.radius, ratios, strict=True)]
    modulus = mixture_modulus(f, radius)
    rounding = cells_rounding(f, arithmetic, np.asarray(radius), grid.cells)
    room = epsilon * (1 - 1e-9)
    if modulus + rounding > room:
        reason = "the numbers of float64 are too far apart in this box"
        raise RefusedError(f"route cells cannot reach ε = {epsilon:g}", [reason])
    bound = min(SLACK * modulus, room - rounding)
    parts = (
        ErrorTerm("modulus of continuity at the cells", "enclosed", bound),
        ErrorTerm("rounding", "rounding", max(min(ROUNDING_SLACK * rounding, room - bound), rounding)),
    )
    return Built(
        network=network.eval().requires_grad_(False),
        route="cells",
        why=_why(f, grid),
        terms=tuple(t for t in parts if t.bound > 0),
        latent_dimension=network.latent_dimension,
        assumptions=(*OF_A_SUMFORMER, *((TORCH_FUNCTIONS,) if has_function(f.expression) else ())),
        constants={"cells": grid.counts, "radius": radius},
    )


def cells_estimate(f: Target, epsilon: float, arithmetic: Arithmetic) -> Estimate:
    """The cells it would take; nothing is built."""
    try:
        f = _accepted(f, arithmetic)
        rounding = _rounding(f, arithmetic)
        grid = _grid(f, rounding, epsilon)
    except (RefusedError, DomainError) as error:
        return Estimate.refused(error)
    seconds = SECONDS + sum(grid.counts) * EACH
    return Estimate(True, _why(f, grid), grid.cells, grid.cells, seconds, (grid.modulus + rounding) / ACCEPT)


def _accepted(f: Target, arithmetic: Arithmetic) -> Target:
    """f as the network evaluates it, without sums where n cancels; a refusal of what the route does not take."""
    if arithmetic.dtype != "float64":
        raise RefusedError("route cells computes in float64", ["dtype='mixed' keeps float32 in and out"])
    if f.positioned:
        reason = "every place is a cell of its own, so there are as many as tokens"
        raise RefusedError(
            "route cells gains nothing from positions", [reason, "route grid takes them, for few tokens"]
        )
    refuse_box(f.box, arithmetic)
    return replace(f, expression=cancelled(f.expression))


def _why(f: Target, grid: _Grid) -> str:
    tables, parts = CellTables.of(f.expression), reductions(f.expression)
    free = "" if any(part.kind.startswith("sum") for part in parts) else " that is free of n"
    over = "pairs of cells that occur" if tables.paired else "cells that occur"
    run = f"; reductions run over {over}" if parts else ""
    return f"continuous with a certified modulus{free}: tokens are counted in {tables.told(grid.counts)}{run}"


def _rounding(f: Target, arithmetic: Arithmetic) -> float:
    """Before the cells are known: for small ones, as many as there may be."""
    return cells_rounding(f, arithmetic, np.array([float(r) for r in f.box.radius]) / TRIAL, MOST_CELLS)


def _grid(f: Target, rounding: float, epsilon: float) -> _Grid:
    """The least cells that were found whose modulus is within ε."""
    tables, room = CellTables.of(f.expression), ACCEPT * epsilon - rounding
    steepest, shares = _shares(f)
    largest = _largest(shares, tables)
    best: _Grid | None = None
    finest: _Grid | None = None
    scale = min(max(1.0, sum(s > 0 for s in shares) * (steepest / room)), largest) if room > 0 else 0.0
    for _ in range(ATTEMPTS if scale else 0):
        grid = _measured(f, tables, _scaled(shares, scale))
        if grid.modulus <= room and (best is None or grid.cells < best.cells):
            best = grid
        if grid.modulus > room and scale == largest:
            finest = grid
            break
        scale = min(max(1.0, scale * (grid.modulus / room)) * (1 + 2.0**-12), largest)
        if best is not None and tables.cells(_scaled(shares, scale)) >= 0.97 * best.cells:
            return best
    if best is not None:
        return best
    raise _refusal(f, tables, finest or _measured(f, tables, _scaled(shares, largest)), rounding, epsilon)


def _shares(f: Target) -> tuple[float, list[float]]:
    """How far f moves when tokens move by half a side, by what small moves do: the most, and each coordinate's share.

    A coordinate in which small moves do nothing has the share of a large one: x stays, so that the distance matters.
    """
    half = [fraction_bounds(r)[1] for r in f.box.radius]
    moved: list[float] = []
    for c in range(f.d):
        alone = [h * (k == c) for k, h in enumerate(half)]
        small = TRIAL * mixture_modulus(f, [h / TRIAL for h in alone])
        moved.append(small or mixture_modulus(f, alone))
    steepest = max(moved)
    if not isfinite(steepest):
        raise RefusedError("tokens move this target by more than the range of float64", ["give it smaller units"])
    return steepest, [m / steepest if steepest else 0.0 for m in moved]


def _scaled(shares: list[float], scale: float) -> list[int]:
    """`scale` cells along the steepest coordinate, the others in proportion: each has an equal part in the error."""
    return [max(1, ceil(share * scale)) for share in shares]


def _largest(shares: list[float], tables: CellTables) -> float:
    """The largest scale whose cells fit, by halving."""
    low, high = 1.0, float(MOST_CELLS)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tables.fits(_scaled(shares, middle)) else (low, middle)
    return low


def _measured(f: Target, tables: CellTables, counts: list[int]) -> _Grid:
    moves = [fraction_bounds(r / k)[1] for r, k in zip(f.box.radius, counts, strict=True)]
    return _Grid(counts, tables.cells(counts), mixture_modulus(f, moves))


def _refusal(f: Target, tables: CellTables, finest: _Grid, rounding: float, epsilon: float) -> RefusedError:
    pairs = f" and {MOST_PAIRS} pairs of them" if tables.paired else ""
    moved = f"with {tables.told(finest.counts)}, tokens move f by up to {finest.modulus:.4g}"
    reachable = useful((finest.modulus + rounding) / ACCEPT * (1 + 1e-9), f)
    said = NONE if reachable is None else f"reachable here: ε = {shown_up(reachable)}"
    reasons = [f"the budget is {MOST_CELLS} cells{pairs}", moved, said]
    return RefusedError(f"route cells cannot reach ε = {epsilon:g}", reasons, reachable)
