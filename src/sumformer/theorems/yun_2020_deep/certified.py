"""plan, f, ε → a network g and terms with d_p(f, g) ≤ Σ terms ≤ ε: the proof's table of contents.

1. δ              f̄ constant on cubes, cells and equal cells within ε                               search
2. quantise       each token to its cell, ramps of width e                                          Lemma 5, 9
3. contextual     each token of each input gets an id of its own, softmax at λ                      Lemma 6, 9
4. value          ids to values                                                                     Lemma 7, 9
5. read-out       cut to the range of the values, unscaled
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf, nextafter
from typing import Any

import torch

from sumformer.algebra.rounding import shown_up
from sumformer.certificates.certificate import OF_A_DEEP_NETWORK, ErrorTerm
from sumformer.errors import InputError, RefusedError
from sumformer.nn.deep_transformer import DeepTransformer
from sumformer.nn.token_head import TokenHead
from sumformer.nn.vector_embedding import VectorEmbedding
from sumformer.targets.target import Target
from sumformer.theorems.built import Built, norm_name
from sumformer.theorems.integral_norm import root
from sumformer.theorems.yun_2020_deep.hardmax_to_softmax import TEMPERATURE
from sumformer.theorems.yun_2020_deep.network import Layers, assemble, deep_network
from sumformer.theorems.yun_2020_deep.piecewise_constant import (
    integrals,
    parts_per_cell,
    piecewise_constant,
    volume,
)
from sumformer.theorems.yun_2020_deep.plan import Plan
from sumformer.theorems.yun_2020_deep.quantise import quantise
from sumformer.theorems.yun_2020_deep.search import BUDGET, SLACK, Choice, ramp, ramps_term, ranges, search, terms

ZERO_PARTS = 256
TIGHTER = (1.0, 0.92, 0.84, 0.7, 0.5)
Progress = Callable[[str], None] | None


def certified(
    plan: Plan, f: Target, epsilon: float, p: float, architecture: str, fused: bool = False, progress: Progress = None
) -> Built:
    """The network of `plan` for f, with its certificate's terms."""
    if not 1 <= p < inf:
        raise InputError(f"construct: expected 1 ≤ p < ∞ for d_p, got {p}")
    whole = zero_bound(f, plan.n, p)
    if epsilon >= whole:
        return _zero(plan, f, whole, p, architecture)
    for tighter in TIGHTER:
        choice = search(f, plan.n, epsilon * tighter, p, plan.grid, plan.obstacles, whole, progress)
        built = _built(plan, f, epsilon, p, choice, architecture, fused)
        if built.total <= epsilon:
            return built
    reachable = f"reachable here: ε = {shown_up(built.total)}"
    raise RefusedError(f"ε = {epsilon:g}: the values are rounded too coarsely", [reachable], built.total)


def zero_bound(f: Target, n: int, p: float) -> float:
    """d_p(f, 0), from above: from there on the zero network suffices."""
    found = integrals(piecewise_constant(f, n, 1), p, _zero_parts(f, n), equal_cells=True)
    return nextafter(root(volume(f, n), found.whole, p) * (1 + 1e-6), inf)


def _zero_parts(f: Target, n: int) -> int:
    return parts_per_cell(f, n, 1, BUDGET, ZERO_PARTS)


def layers_of(plan: Plan, f: Target, choice: Choice) -> Layers:
    """The exact programs for f̄."""
    grid = choice.grid
    width = max(f.input_box.d, f.width)
    contextual = plan.contextual(grid, width)
    values = choice.bar.at(grid.cells())
    return assemble(
        grid, quantise(grid, width), contextual, plan.reject(contextual, grid), values, plan.magnitude(grid)
    )


def _built(plan: Plan, f: Target, epsilon: float, p: float, choice: Choice, architecture: str, fused: bool) -> Built:
    parts = layers_of(plan, f, choice)
    e = ramp(f, choice, p, epsilon)
    network = deep_network(parts, f.input_box, e, TEMPERATURE, fused)
    unit = 2.0**-parts.scale
    reach = ranges(choice) + 2 * unit
    cells, equal = terms(f, choice, p, reach)
    found = (
        ErrorTerm("cells", "enclosed", cells * SLACK),
        ErrorTerm("tokens in equal cells", "enclosed", equal * SLACK),
        ErrorTerm("ramps", "proved", ramps_term(f, choice, p, float(e) + 2 * slop(f, choice.grid.q, plan.n), reach)),
        ErrorTerm("softmax", "proved", nextafter(0.0, 1.0)),
        ErrorTerm("rounding", "rounding", rounding_term(f, plan.n, p, unit) * SLACK),
    )
    return Built(
        network=network,
        route=plan.theorem,
        why=_why(choice, parts),
        terms=tuple(t for t in found if t.bound > 0),
        latent_dimension=parts.width,
        constants={**constants(plan, choice, parts, e, p), **_placed(f)},
        assumptions=OF_A_DEEP_NETWORK,
        architecture=architecture,
        norm=norm_name(p),
    )


def _placed(f: Target) -> dict[str, Any]:
    """The network itself knows the places of the tokens."""
    return {"positions": True} if f.positioned else {}


def rounding_term(f: Target, n: int, p: float, unit: float) -> float:
    """(V n width)^{1/p} · unit/2: written values are multiples of `unit`."""
    return root(volume(f, n), n * f.width, p) * unit / 2 * (1 + 1e-9)


def slop(f: Target, q: int, n: int) -> float:
    """How far, in cells, float64 may misplace a token: x ↦ q(x − lower)/(upper − lower) + place, rounded."""
    far = max(
        float((max(abs(low), abs(high)) + abs(low)) / (high - low))
        for low, high in zip(f.input_box.lower, f.input_box.upper, strict=True)
    )
    return 8 * 2.0**-53 * q * (far + n)


def constants(plan: Plan, choice: Choice, parts: Layers, e: Fraction, p: float) -> dict[str, Any]:
    """What the certificate records."""
    grid = choice.grid
    built = [len(parts.quantise), len(parts.contextual), len(parts.look_up) + len(parts.reject or ())]
    counts = plan.counts(grid)
    return {
        "theorem": plan.theorem,
        "n": plan.n,
        "cells": grid.q,
        "parts": choice.parts,
        "p": p,
        "ramp": str(e),
        "temperature": TEMPERATURE,
        "scale": parts.scale,
        "pattern": None if plan.pattern is None else plan.pattern.config(),
        "places": None if grid.places is None else list(grid.places),
        "layers": [
            {"step": step, "built": count, "formula": formula, "count": counts[step]}
            for step, count, formula in zip(counts, built, plan.formulas, strict=True)
        ],
        "read_out_layers": len(parts.clip),
    }


def _why(choice: Choice, parts: Layers) -> str:
    attention = len(parts.contextual)
    wise = len(parts.quantise) + sum(len(part) for part in parts.token_wise)
    return f"δ = 1/{choice.grid.q}: {attention} attention layers and {wise} token-wise layers"


def _zero(plan: Plan, f: Target, whole: float, p: float, architecture: str) -> Built:
    """g = 0, no layers: it suffices, since d_p(f, 0) ≤ ε."""
    width = max(f.input_box.d, f.width)
    embedding, head = VectorEmbedding(f.input_box.d, width), TokenHead(width, f.width)
    with torch.no_grad():
        for parameter in (*embedding.parameters(), *head.parameters()):
            parameter.zero_()
    network = DeepTransformer(plan.n, embedding, [], head).to(torch.float64).eval().requires_grad_(False)
    return Built(
        network=network,
        route=f"{plan.theorem}, zero network",
        why=f"ε is at least d_p(f, 0) ≤ {shown_up(whole, 4)}: the zero network suffices",
        terms=(ErrorTerm("the target itself", "enclosed", whole),),
        latent_dimension=width,
        constants={
            "theorem": plan.theorem,
            "n": plan.n,
            "cells": 0,
            "parts": _zero_parts(f, plan.n),
            "p": p,
            "layers": [],
            "zero": True,
            **_placed(f),
        },
        assumptions=OF_A_DEEP_NETWORK,
        architecture=architecture,
        norm=norm_name(p),
    )
