"""A plan as a module: names become places in lists, coefficients become parameters."""

from __future__ import annotations

from typing import Any

import torch

from sumformer.nn.expression_sumformer import ExpressionSumformer
from sumformer.targets import Node, to_source
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.decomposition import Decomposition, Term
from sumformer.theorems.alberti_2023.plan import Plan


def build(plan: Plan, arithmetic: Arithmetic) -> ExpressionSumformer:
    """The network of a plan."""
    box = plan.decomposition.expander.box
    channels, kernels, products = list(plan.channels), list(plan.kernels), list(plan.products)
    network = ExpressionSumformer(
        expression=to_source(plan.decomposition.expression),
        d=box.d,
        centre=[str(c) for c in box.centre],
        radius=[str(r) for r in box.radius],
        arithmetic=arithmetic.name,
        group=arithmetic.group,
        channels=[{"factor": to_source(c), "support": [list(b) for b in plan.channels[c]]} for c in channels],
        kernels=[_kernel(plan, k) for k in kernels],
        products=[
            {"kernels": [kernels.index(k) for k in p], "support": [list(b) for b in plan.products[p].support]}
            for p in products
        ],
        reductions=reductions_of(plan.decomposition, channels, products),
    )
    with torch.no_grad():
        for parameter, kernel in zip(network.coefficients, kernels, strict=True):
            parameter.copy_(torch.from_numpy(plan.kernels[kernel].truncation.matrix().copy()))
    return network


def reductions_of(
    decomposition: Decomposition, channels: list[Node], products: list[tuple[Node, ...]]
) -> list[dict[str, Any]]:
    """Every reduction of the target and its terms, which name their channel and product by place."""

    def term(t: Term) -> dict[str, Any]:
        return {
            "own": to_source(t.own_node),
            "channel": channels.index(t.channel),
            "polynomial": [[list(gamma), str(c)] for gamma, c in t.polynomial],
            "product": products.index(t.kernels),
        }

    return [
        {"reduction": to_source(s.reduction), "components": [[term(t) for t in terms] for terms in s.components]}
        for s in decomposition.sums
    ]


def _kernel(plan: Plan, kernel: Node) -> dict[str, Any]:
    chosen = plan.kernels[kernel]
    degrees = [chosen.degree] * len(chosen.coordinates)
    return {
        "expression": to_source(kernel),
        "coordinates": list(chosen.coordinates),
        "x_degrees": degrees,
        "y_degrees": degrees,
    }
