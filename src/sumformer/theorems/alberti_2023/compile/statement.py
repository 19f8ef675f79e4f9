"""What the three theorems share: S within a part of ε, compiled within the rest, the terms of the certificate."""

from __future__ import annotations

from typing import Any, TypeVar

import torch

from sumformer.certificates.certificate import OF_A_COMPILED_NETWORK, ErrorTerm
from sumformer.errors import InputError, RefusedError
from sumformer.gadgets.saw import PREFERENCES, Prefer
from sumformer.nn.multi_head import MultiHead
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.compile.compiler import USABLE, Parts, compile_network, ideal_of
from sumformer.theorems.alberti_2023.compile.network import Head
from sumformer.theorems.built import ROUNDING_SLACK, SLACK, Built

M = TypeVar("M", bound=MultiHead)
UNDERFLOW = 1e-280  # of all blocks: claimed of a network of zeros too


def select(layer: M, values: list[int], means: list[int], scale: float = 1.0) -> M:
    """W_Q = W_K = 0, W_V takes the coordinates `values` times `scale`, W_O puts them at `means`."""
    with torch.no_grad():
        for parameter in (layer.W_Q.weight, layer.W_K.weight, layer.W_V.weight, layer.W_O.weight):
            parameter.zero_()
        for i, (source, target) in enumerate(zip(values, means, strict=True)):
            layer.W_V.weight[i, source] = scale
            layer.W_O.weight[target, i] = 1.0
    return layer


def statement(
    f: Target,
    epsilon: float,
    arithmetic: Arithmetic,
    route: str | None,
    prefer: Prefer,
    architecture: str,
    head: Head,
    roundings: int,
    tokens: int | None,
) -> Built:
    """N with Σ terms ≤ ε."""
    if prefer not in PREFERENCES:
        raise InputError(f"{architecture}: expected prefer in {PREFERENCES}, got {prefer!r}")
    if arithmetic.name != "float64":
        raise RefusedError(
            f"a compiled {architecture} is certified in float64 only", [f"dtype='float64'; asked for {arithmetic.name}"]
        )
    if route not in (None, "exact", "sums", "symmetric"):
        raise RefusedError(
            f"route {route} is not compiled", ["routes exact, sums and symmetric are; grid is looked up"]
        )
    ideal = ideal_of(f, epsilon, arithmetic, prefer, route)
    if route == "exact" and ideal.route != "exact":
        raise RefusedError("route exact takes polynomials written with sums", ["this target is not one"])
    approximation = sum(t.bound for t in ideal.approximation)
    room = USABLE * epsilon - approximation
    compilation = compile_network(ideal, f, 0.98 * room / SLACK, head, roundings, tokens)
    terms = (*ideal.approximation, *_terms(compilation.parts, epsilon, approximation))
    total = sum(t.bound for t in terms)
    if not total <= epsilon:
        alone = compilation.parts.rounding + compilation.parts.head
        least = 3 * alone
        many = [f"most of it from sums over up to n = {f.tokens.maximum} tokens: --tokens any..100000 has less"]
        raise RefusedError(
            f"ε = {epsilon:g} is not reachable in float64: rounding alone is {alone:.2g}",
            [f"reachable here: ε ≈ {least:.2g}", *(many if f.tokens.maximum > 10**6 else [])],
            least,
        )
    constants: dict[str, Any] = {"prefer": prefer, "blocks": len(compilation.network.blocks)}
    constants["ideal"] = dict(ideal.constants)
    return Built(
        network=compilation.network,
        route=ideal.route,
        why=f"the Sumformer of route {ideal.route}, compiled into one attention layer between ReLU layers",
        terms=terms,
        latent_dimension=compilation.network.latent_dimension,
        constants=constants,
        assumptions=OF_A_COMPILED_NETWORK,
        architecture=architecture,
    )


def _terms(parts: Parts, epsilon: float, approximation: float) -> tuple[ErrorTerm, ...]:
    gadgets = (parts.phi + parts.psi) * SLACK
    room = epsilon * (1 - 1e-9) - approximation - gadgets
    share = max(min(ROUNDING_SLACK, room / max(parts.rounding + parts.head, 1e-300)), 1.0)
    found = (
        ErrorTerm("φ gadgets", "proved", parts.phi * SLACK),
        ErrorTerm("sum head", "rounding", parts.head * share),
        ErrorTerm("ψ gadgets", "proved", parts.psi * SLACK),
        ErrorTerm("rounding", "rounding", max(parts.rounding * share, min(UNDERFLOW, room))),
    )
    return tuple(t for t in found if t.bound > 0)
