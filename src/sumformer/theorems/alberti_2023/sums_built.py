"""Routes *exact* and *sums* as a network with error terms: remainder, dropped coefficients, rounding."""

from __future__ import annotations

from typing import Any

from sumformer.certificates.certificate import ErrorTerm
from sumformer.errors import RefusedError
from sumformer.targets import Node, to_source
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.build import build
from sumformer.theorems.alberti_2023.sums_route import SumsResult, sums_route
from sumformer.theorems.built import ROUNDING_SLACK, SLACK, Built


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
    result = sums_route(f, epsilon, arithmetic)
    constants = {
        "grouping": result.grouping,
        "kernels": [_kernel_constants(result, kernel) for kernel in result.plan.kernels],
    }
    return Built(
        network=build(result.plan, arithmetic).eval().requires_grad_(False),  # to train on: requires_grad_(True)
        route="exact" if result.exact else "sums",
        why=_why(result),
        terms=_terms(result, epsilon),
        latent_dimension=result.plan.latent_dimension,
        constants=constants,
    )


def _why(result: SumsResult) -> str:
    if result.exact:
        return "a polynomial written with sums: power sums represent it exactly, only rounding is left"
    if not result.plan.kernels:
        return "made of sums whose terms depend on x or on y alone: nothing is interpolated, only rounding is left"
    mixed = ", ".join(dict.fromkeys(to_source(kernel) for kernel in result.plan.kernels))
    return f"made of sums; what mixes x and y is analytic and interpolated: {mixed}"


def _terms(result: SumsResult, epsilon: float) -> tuple[ErrorTerm, ...]:
    split = result.split
    room = epsilon * (1 - 1e-9) - SLACK * (split.remainder + split.dropped)
    rounding = max(min(ROUNDING_SLACK * split.rounding, room), split.rounding)
    parts = (
        ErrorTerm("interpolation remainder", "proved", split.remainder * SLACK),
        ErrorTerm("dropped and rounded coefficients", "enclosed", split.dropped * SLACK),
        ErrorTerm("rounding", "rounding", rounding),
    )
    return tuple(term for term in parts if term.bound > 0)


def _kernel_constants(result: SumsResult, kernel: Node) -> dict[str, Any]:
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
