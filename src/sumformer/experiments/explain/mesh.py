"""A Sumformer on a mesh: of each series b(y) p(v) the mass of all nodes, beside Σ_j b(x_j) p(v_j), and ψ's sums.

Σ_a ℓ_a = 1, so that a token's masses add up to b p, however they are spread over its nodes.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod

import torch
from torch import Tensor

from sumformer.experiments.explain.explanation import BlockLine, Explanation, ValueLine
from sumformer.experiments.explain.sums import reduction_lines
from sumformer.nn.mesh_sumformer import MeshSumformer
from sumformer.targets import Environment, evaluate, parse
from sumformer.targets.torch_evaluation import TorchOperations
from sumformer.theorems.constructed import Construction


def explain_mesh(made: Construction, network: MeshSumformer, X: Tensor, tokens: Tensor) -> Explanation:
    """X as given, and the `tokens` (n, d) that the network sees."""
    inputs = tokens.to(network.outside)
    masses = _series_masses(network, network.summarise(inputs[:, None]).total.double())
    names, ideal = _series(network, tokens)
    sums = [
        ValueLine(f"Σ {name}", "mass of all nodes", k, "Σ", float(masses[:, k].sum()), float(ideal[:, k].sum()), None)
        for k, name in enumerate(names)
    ]
    wanted = made.target(X[None])[0]
    inside = {"kernel": len(network.kernels), "reduction": len(network.reductions)}
    return Explanation(
        made,
        X,
        (
            BlockLine("φ", None, {"mass": network.latent_dimension}, tuple((name, k) for k, name in enumerate(names))),
            BlockLine("Σ", None, {"sum over tokens": network.latent_dimension}),
            BlockLine("ψ", None, inside),
        ),
        (*reduction_lines(network, tokens), *sums),
        network(inputs[None])[0].double(),
        wanted,
        wanted,
        (
            "φ, Σ and ψ are one Sumformer: y_i = ψ(x_i, Σ_j φ(x_j)); φ(x_j) are masses on the nodes around x_j",
            *(_mesh(network, kernel) for kernel in network.kernels),
        ),
        features=masses,
    )


def _mesh(network: MeshSumformer, kernel: dict[str, object]) -> str:
    found = next(k for data, k in zip(network.kernels, network.mesh_kernels, strict=True) if data is kernel)
    nodes = " × ".join(str(n) for n in found.shape)
    return f"mesh of {kernel['expression']}: {nodes} nodes, {kernel['width']} in each coordinate for a token"


def _series_masses(network: MeshSumformer, total: Tensor) -> Tensor:
    """(n, d') → (n, series): what all nodes of a series hold."""
    out = []
    blocks = torch.split(total, [p.size for p in network.mesh_products], dim=-1)
    for product, block in zip(network.mesh_products, blocks, strict=True):
        out.append(block.reshape(len(total), prod(product.shape), product.series_count).sum(1))
    return torch.cat(out, dim=-1)


def _series(network: MeshSumformer, tokens: Tensor) -> tuple[list[str], Tensor]:
    """Names and values of b(x_j) p(v_j), T_k(v) = cos(k arccos v) here."""
    centre, radius = (
        tokens.new_tensor([float(Fraction(v)) for v in side]) for side in (network.centre, network.radius)
    )
    angle = ((tokens - centre) / radius).clamp(-1, 1).arccos()
    ops, names, columns = TorchOperations(tokens.dtype, tokens.device), [], []
    for product in network.mesh_products:
        for channel, polynomial in product.series:
            factor = str(network.channels[channel]["factor"])
            b = evaluate(parse(factor, network.d, free_y=True), ops, Environment(y=tokens))[..., 0]
            parts = [float(c) * (angle * tokens.new_tensor(gamma)).cos().prod(-1) for gamma, c in polynomial]
            columns.append(b * torch.stack(parts).sum(0))
            written = " + ".join(_monomial(gamma, c) for gamma, c in polynomial)
            names.append(written if factor == "1" else f"({factor})·({written})")
    return names, torch.stack(columns, dim=-1)


def _monomial(gamma: tuple[int, ...], coefficient: Fraction) -> str:
    parts = [f"T{k}({'v' if len(gamma) == 1 else f'v[{c}]'})" for c, k in enumerate(gamma) if k]
    return "·".join([*([] if coefficient == 1 and parts else [str(coefficient)]), *parts])
