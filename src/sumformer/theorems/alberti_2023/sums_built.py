"""Routes *exact* and *sums* as a network with error terms: remainder, dropped coefficients, rounding."""

from __future__ import annotations

import time
from typing import Any

from sumformer.certificates.certificate import OF_A_SUMFORMER, OWN_TOKEN, TORCH_FUNCTIONS, ErrorTerm
from sumformer.errors import DomainError, RefusedError
from sumformer.targets import Node, to_source
from sumformer.targets.target import Target
from sumformer.targets.walk import has_function
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.build import build
from sumformer.theorems.alberti_2023.decomposition import decompose
from sumformer.theorems.alberti_2023.plan import Plan, terms_of
from sumformer.theorems.alberti_2023.plan_search import P
from sumformer.theorems.alberti_2023.planned import Planned
from sumformer.theorems.alberti_2023.position_tables import tabulated
from sumformer.theorems.alberti_2023.sums_route import sums_or_own, sums_route
from sumformer.theorems.built import ROUNDING_SLACK, SLACK, Built, Estimate


def exact(f: Target, epsilon: float, arithmetic: Arithmetic) -> Built:
    """Polynomials written with sums: power sums represent them, the error is rounding."""
    built = sums(f, epsilon, arithmetic)
    if built.route != "exact":
        raise RefusedError(
            "route exact takes polynomials written with sums", ["this target is not one; route sums takes it"]
        )
    return built


def sums(f: Target, epsilon: float, arithmetic: Arithmetic) -> Built:
    """h(x_i, Σ_j k(x_i, x_j), …): what mixes x and y is interpolated, the rest is computed as written."""
    result, written = _plain_or_tabulated(f, epsilon, arithmetic)
    constants = {
        "grouping": result.grouping,
        "kernels": [kernel_constants(result, kernel) for kernel in result.plan.kernels],
        **merged(arithmetic),
    }
    return Built(
        network=build(result.plan, arithmetic).eval().requires_grad_(False),  # to train on: requires_grad_(True)
        route="exact" if result.exact else "sums",
        why=_why(result),
        terms=error_terms(result, epsilon, arithmetic.tiny_out),
        latent_dimension=result.plan.latent_dimension,
        constants=constants if written is f else {**constants, "written": f.source},
        assumptions=assumptions_of(result),
        target=None if written is f else written,
    )


def merged(arithmetic: Arithmetic) -> dict[str, int]:
    """How deep summaries may be merged, where that was asked for."""
    return {"merges": arithmetic.merges} if arithmetic.merges else {}


def assumptions_of(result: Planned[P]) -> tuple[str, ...]:
    """Those of every Sumformer, that on torch's functions where φ or ψ computes one, and what the proof used."""
    plan = result.plan
    computed = [plan.decomposition.expression, *plan.channels, *(t.own_node for t in terms_of(plan.decomposition))]
    functions = any(has_function(node, into_reductions=False) for node in computed)
    named = [(functions, TORCH_FUNCTIONS), (result.own_token, OWN_TOKEN)]
    return (*OF_A_SUMFORMER, *(text for used, text in named if used))


def _plain_or_tabulated(f: Target, epsilon: float, arithmetic: Arithmetic) -> tuple[Planned[Plan], Target]:
    """The target as it is; failing that, its factors of the positions i and j as tables, which changes no value."""
    try:
        return sums_or_own(f, epsilon, arithmetic), f
    except (RefusedError, DomainError) as refusal:
        for table in tabulated(f) if f.positioned else ():
            try:
                return sums_route(table, epsilon, arithmetic), table
            except (RefusedError, DomainError):
                continue
        raise refusal from None


def is_polynomial(f: Target) -> bool:
    """Whether route sums takes f as route exact."""
    try:
        return decompose(f.countless, f.box, "split").polynomial
    except (RefusedError, DomainError):
        return False


def exact_estimate(f: Target, epsilon: float, arithmetic: Arithmetic) -> Estimate:
    """As `sums_estimate`, for polynomials only."""
    try:
        polynomial = decompose(f.countless, f.box, "split").polynomial
    except (RefusedError, DomainError) as error:
        return Estimate.refused(error)
    return sums_estimate(f, epsilon, arithmetic) if polynomial else Estimate(False, "not a polynomial with sums")


def sums_estimate(f: Target, epsilon: float, arithmetic: Arithmetic) -> Estimate:
    """The plan of the route with its bound, which is what takes its time; no network is built."""
    start = time.perf_counter()
    try:
        result = sums_or_own(f, epsilon, arithmetic)
    except (RefusedError, DomainError) as error:
        return Estimate.refused(error)
    seconds = time.perf_counter() - start
    terms = sum(int((plan.truncation.coefficients != 0).sum()) for plan in result.plan.kernels.values())
    return Estimate(True, _why(result), result.plan.latent_dimension, terms, seconds, result.split.total)


def _why(result: Planned[Plan]) -> str:
    if result.exact:
        return "a polynomial written with sums: power sums represent it exactly, only rounding is left"
    if not result.plan.kernels:
        return "made of sums whose terms depend on x or on y alone: nothing is interpolated, only rounding is left"
    own = "; its sums hold the own token, so queries are the sources" if result.own_token else ""
    mixed = ", ".join(dict.fromkeys(to_source(kernel) for kernel in result.plan.kernels))
    return f"made of sums; what mixes x and y is analytic and interpolated: {mixed}{own}"


def error_terms(result: Planned[P], epsilon: float, tiny: float) -> tuple[ErrorTerm, ...]:
    """Those that are not 0, with some slack for the checker."""
    split = result.split
    room = epsilon * (1 - 1e-9) - SLACK * (split.remainder + split.dropped)
    least = min(64 * tiny, room) if result.plan.decomposition.sums else 0.0  # sums of zeros: underflow is counted
    rounding = max(min(ROUNDING_SLACK * split.rounding, room), split.rounding, least)
    parts = (
        ErrorTerm("interpolation remainder", "proved", split.remainder * SLACK),
        ErrorTerm("dropped and rounded coefficients", "enclosed", split.dropped * SLACK),
        ErrorTerm("rounding", "rounding", rounding),
    )
    return tuple(term for term in parts if term.bound > 0)


def kernel_constants(result: Planned[Plan], kernel: Node) -> dict[str, Any]:
    plan = result.plan.kernels[kernel]
    return {
        "expression": to_source(kernel),
        "degree": plan.degree,
        "interpolation_degree": plan.interpolant.degree,
        "ellipses": [{"variable": e.variable, "rho": e.rho, "maximum": e.maximum} for e in plan.interpolant.ellipses],
        "range": list(plan.range),
        "remainder": plan.interpolant.remainder,
        "dropped": plan.truncation.dropped,
    }
