"""Route *mesh* as a network with error terms: kernels of differences, interpolated on a mesh of equidistant nodes.

Where a kernel is sharp or has three coordinates, Chebyshev features are too many; a token meets only w^k nodes of a
mesh.
"""

from __future__ import annotations

import time
from math import inf
from typing import Any

import torch

from sumformer.certificates.certificate import ErrorTerm
from sumformer.errors import DomainError, RefusedError
from sumformer.nn.mesh_sumformer import MeshSumformer
from sumformer.targets import Node, to_source
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.build import reductions_of
from sumformer.theorems.alberti_2023.mesh_kernel import MeshKernelPlan
from sumformer.theorems.alberti_2023.mesh_plan import MeshPlan, MeshPlanner
from sumformer.theorems.alberti_2023.mesh_roundings import GROUP
from sumformer.theorems.alberti_2023.planned import Planned, planned_or_own
from sumformer.theorems.alberti_2023.sums_built import assumptions_of, error_terms, merged
from sumformer.theorems.built import Built, Estimate


def mesh(f: Target, epsilon: float, arithmetic: Arithmetic) -> Built:
    """h(x_i, Σ_j k(x_i − x_j), …) for sharp k: masses on a mesh, a sum over its nodes, values between them."""
    result = _planned(f, epsilon, arithmetic)
    names = ("interpolation remainder", "rounded samples and places", "rounding")
    return Built(
        network=_build(result.plan, arithmetic).eval().requires_grad_(False),
        route="mesh",
        why=_why(result),
        terms=tuple(
            ErrorTerm(name, term.kind, term.bound)
            for name, term in zip(names, error_terms(result, epsilon, arithmetic.tiny_out), strict=True)
        ),
        latent_dimension=result.plan.latent_dimension,
        constants={
            "grouping": result.grouping,
            "kernels": [_constants(result.plan, kernel) for kernel in result.plan.kernels],
            **merged(arithmetic),
        },
        assumptions=assumptions_of(result),
    )


def mesh_estimate(f: Target, epsilon: float, arithmetic: Arithmetic) -> Estimate:
    """The plan of the route with its bound, which is what takes its time; no network is built."""
    start = time.perf_counter()
    try:
        result = _planned(f, epsilon, arithmetic)
    except (RefusedError, DomainError) as error:
        return Estimate.refused(error)
    seconds = time.perf_counter() - start
    terms = sum(plan.samples.values.size for plan in result.plan.kernels.values())
    return Estimate(True, _why(result), result.plan.latent_dimension, terms, seconds, result.split.total)


def _planned(f: Target, epsilon: float, arithmetic: Arithmetic) -> Planned[MeshPlan]:
    if arithmetic.dtype != "float64":
        raise RefusedError("route mesh computes in float64", ["dtype='mixed' keeps float32 in and out"])
    return planned_or_own(f, epsilon, arithmetic, MeshPlanner(arithmetic))


def _why(result: Planned[MeshPlan]) -> str:
    own = "; its sums hold the own token, so queries are the sources" if result.own_token else ""
    meshes = []
    for kernel, plan in result.plan.kernels.items():
        nodes = " × ".join(str(n) for n in plan.shape)
        meshes.append(f"{to_source(kernel)} ({nodes} nodes, {plan.choice.width} a token and coordinate)")
    each = ", ".join(meshes)
    cost = "every sequence, however short, costs sums over all nodes"
    return f"made of sums whose kernels depend on x − y and are interpolated on a mesh: {each}; {cost}{own}"


def _constants(plan: MeshPlan, kernel: Node) -> dict[str, Any]:
    """What a certificate records; δ, L and ℓ in units of the coordinate."""
    chosen = plan.kernels[kernel]
    mesh, radii = chosen.choice, [float(r) for r in chosen.study.box.radius]
    share = (1 + chosen.relative_remainder) * (1 + chosen.relative_dropped) - 1
    return {
        "expression": to_source(kernel),
        "width": mesh.width,
        "intervals": list(mesh.intervals),
        "sums": _sums(chosen),
        "strips": [
            {"coordinate": c, "reach": s.reach * r, "maximum": s.maximum}
            for c, s, r in zip(chosen.coordinates, mesh.strips, radii, strict=False)
        ],
        "slants": [
            {"coordinate": c, "slope": s.slope / r, "log_slope": None if share == inf else s.log_slope / r}
            for c, s, r in zip(chosen.coordinates, mesh.slants, radii, strict=False)
        ],
        "range": list(chosen.range),
        "remainder": chosen.remainder,
        "dropped": chosen.dropped,
        "relative": None if share == inf else share,
    }


def _sums(plan: MeshKernelPlan) -> str:
    return "frequencies" if plan.by_frequencies else "pairs"


def _build(plan: MeshPlan, arithmetic: Arithmetic) -> MeshSumformer:
    box = plan.decomposition.expander.box
    channels, kernels, products = list(plan.channels), list(plan.kernels), list(plan.products)
    network = MeshSumformer(
        expression=to_source(plan.decomposition.expression),
        d=box.d,
        centre=[str(c) for c in box.centre],
        radius=[str(r) for r in box.radius],
        arithmetic=arithmetic.name,
        group=GROUP,
        channels=[{"factor": to_source(c)} for c in channels],
        kernels=[
            {
                "expression": to_source(k),
                "coordinates": list(plan.kernels[k].coordinates),
                "intervals": list(plan.kernels[k].choice.intervals),
                "width": plan.kernels[k].choice.width,
                "sums": _sums(plan.kernels[k]),
            }
            for k in kernels
        ],
        products=[{"kernels": [kernels.index(k) for k in p]} for p in products],
        reductions=reductions_of(plan.decomposition, channels, products),
    )
    with torch.no_grad():
        for parameter, kernel in zip(network.samples, kernels, strict=True):
            parameter.copy_(torch.from_numpy(plan.kernels[kernel].samples.values.copy()))
    return network
