"""What A 4.3–4.5 share: S within a part of ε, compiled within the rest, the terms of the certificate; or a look-up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sumformer.certificates.certificate import OF_A_COMPILED_NETWORK, ErrorTerm
from sumformer.errors import DomainError, InputError, RefusedError
from sumformer.gadgets.saw import PREFERENCES, Prefer
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.compile.compiler import USABLE, Parts, compile_network, ideal_of
from sumformer.theorems.alberti_2023.compile.mean_head import MeanHead
from sumformer.theorems.alberti_2023.compile.moderate import require_moderate
from sumformer.theorems.alberti_2023.guesses import useful
from sumformer.theorems.alberti_2023.look_up.statement import look_up_asked, look_up_last, look_up_statement
from sumformer.theorems.built import ROUNDING_SLACK, SLACK, Built, in_one_line
from sumformer.theorems.nearest import nearest

UNDERFLOW = 1e-280  # of all blocks: claimed of a network of zeros too


def statement(
    f: Target,
    epsilon: float,
    arithmetic: Arithmetic,
    route: str | None,
    prefer: Prefer,
    head: MeanHead,
    activation: str | None,
    p: float | None,
    tables: MeanHead | None = None,
) -> Built:
    """By route grid a look-up. Else N compiled from S, Σ terms ≤ ε; failing that, the look-up where no route is asked
    for; failing that, a refusal that names an ε.

    `activation` and `p` are those of a look-up, and so is its head `tables`, where it is not `head`.
    """
    tables = head if tables is None else tables
    if look_up_asked(route, activation, p):
        return look_up_statement(f, epsilon, arithmetic, tables, activation, p)
    _check(head.architecture, arithmetic, route, prefer)

    def attempt(tolerance: float) -> Built:
        return _built(f, tolerance, arithmetic, route, prefer, head)

    try:
        return attempt(epsilon)
    except RefusedError as refusal:
        message, *reasons = str(refusal).split("\n  - ")
        guess, reached = refusal.reachable, []
    if route is None:
        try:
            return replace(look_up_last(f, epsilon, arithmetic, tables), passed_over=tuple(reasons) or (message,))
        except (RefusedError, DomainError) as refusal:
            reasons.append(f"grid: {in_one_line(refusal)}")
            least = getattr(refusal, "reachable", None)
            reached.append(None if least is None else useful(least, f))
    else:
        reasons.append("without a route a look-up is tried too, which asks for continuity alone")
    if guess is not None:
        found = nearest(attempt, epsilon, guess)
        reached.append(found)
        reasons.append("no larger ε was found that is met" if found is None else f"nearest, by trying: ε = {found:g}")
    raise RefusedError(message, reasons, min((e for e in reached if e is not None), default=None))


def _check(architecture: str, arithmetic: Arithmetic, route: str | None, prefer: Prefer) -> None:
    if prefer not in PREFERENCES:
        raise InputError(f"{architecture}: expected prefer in {PREFERENCES}, got {prefer!r}")
    if arithmetic.name != "float64":
        raise RefusedError(
            f"a compiled {architecture} is certified in float64 only", [f"dtype='float64'; asked for {arithmetic.name}"]
        )
    if route not in (None, "exact", "sums", "symmetric"):
        raise RefusedError(
            f"route {route} is not compiled",
            ["routes exact, sums and symmetric are; for one number of tokens grid is looked up (--route grid)"],
        )


def _built(
    f: Target, epsilon: float, arithmetic: Arithmetic, route: str | None, prefer: Prefer, head: MeanHead
) -> Built:
    ideal = ideal_of(f, epsilon, arithmetic, prefer, route)
    if route == "exact" and ideal.route != "exact":
        raise RefusedError("route exact takes polynomials written with sums", ["this target is not one"])
    approximation = sum(t.bound for t in ideal.approximation)
    room = USABLE * epsilon - approximation
    compilation = compile_network(ideal, f, 0.98 * room / SLACK, head)
    require_moderate(compilation.network)
    terms = (*ideal.approximation, *_terms(compilation.parts, epsilon, approximation))
    total = sum(t.bound for t in terms)
    if not total <= epsilon:
        alone = compilation.parts.rounding + compilation.parts.head
        many = [f"most of it from sums over up to n = {f.tokens.maximum} tokens: --tokens any..100000 has less"]
        raise RefusedError(
            f"ε = {epsilon:g} is not reachable in float64: rounding alone is {alone:.2g}",
            many if f.tokens.maximum > 10**6 else [],
            3 * alone,
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
        architecture=head.architecture,
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
