"""A Sumformer of features: φ(x_j) = (b(x_j) T_β(u_j))_β, their sums Σ, and what ψ makes of them, beside the ideal.

Here T_k(u) = cos(k arccos u), not the recurrence by which the network gets it. Of these values only the outputs carry
a bound: the certificate's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import torch
from torch import Tensor

from sumformer.experiments.explain.explanation import BlockLine, Explanation, ValueLine
from sumformer.nn.expression_sumformer import ExpressionSumformer
from sumformer.nn.mesh_sumformer import MeshSumformer
from sumformer.nn.symmetric_sumformer import SymmetricSumformer
from sumformer.targets import Environment, evaluate, parse, to_source
from sumformer.targets.torch_evaluation import TorchOperations, evaluate_tensor
from sumformer.theorems.constructed import Construction

Feature = tuple[str, tuple[int, ...]]
"""b as an expression in y, and β."""


def explain_sums(
    made: Construction, network: ExpressionSumformer | SymmetricSumformer, X: Tensor, tokens: Tensor
) -> Explanation:
    """X as given, and the `tokens` (n, d) that the network sees."""
    features = _features(network)
    factors = _factors(features)
    inputs = tokens.to(network.outside)
    alone = network.summarise(inputs[:, None]).total.double()  # each token as a list of its own: φ(x_j)
    total, phi = network.summarise(inputs[None]).total[0].double(), _ideal(network, features, tokens)
    ideal = phi.sum(0)
    names = [_name(factors[factor], beta) for factor, beta in features]
    sums = [
        ValueLine(f"Σ {name}", "sum over tokens", k, "Σ", float(total[k]), float(ideal[k]), None)
        for k, name in enumerate(names)
    ]
    inside = reduction_lines(network, tokens) if isinstance(network, ExpressionSumformer) else _others(sums, alone, phi)
    wanted = made.target(X[None])[0]
    return Explanation(
        made,
        X,
        _blocks(network, names),
        (*inside, *sums),
        network(inputs[None])[0].double(),
        wanted,
        wanted,
        ("φ, Σ and ψ are one Sumformer: y_i = ψ(x_i, Σ_j φ(x_j))", *_legend(network, factors)),
        features=alone,
    )


def _features(network: ExpressionSumformer | SymmetricSumformer) -> list[Feature]:
    if isinstance(network, SymmetricSumformer):
        return [("1", tuple(beta)) for beta in network.features]
    return [(str(c["factor"]), tuple(beta)) for c in network.channels for beta in c["support"]]


def _factors(features: list[Feature]) -> dict[str, str]:
    """A short name for every factor: nothing for 1, then b1, b2, …"""
    found = dict.fromkeys(factor for factor, _ in features if factor != "1")
    return {"1": "", **{factor: f"b{k}" for k, factor in enumerate(found, 1)}}


def _legend(network: ExpressionSumformer | SymmetricSumformer, factors: dict[str, str]) -> list[str]:
    """What the names stand for."""
    scaled = [f"(y[{c}] - {a})/({r})" for c, (a, r) in enumerate(zip(network.centre, network.radius, strict=True))]
    u = f"u = {', '.join(scaled)}; T_k(u) = cos(k arccos u)"
    return [u, *(f"{name} = {factor}" for factor, name in factors.items() if name)]


def _name(factor: str, beta: Sequence[int]) -> str:
    parts = [f"T{k}({'u' if len(beta) == 1 else f'u[{c}]'})" for c, k in enumerate(beta) if k]
    return "·".join([*([factor] if factor else []), *parts]) or "1"


def _ideal(network: ExpressionSumformer | SymmetricSumformer, features: list[Feature], tokens: Tensor) -> Tensor:
    """φ(x_j), (n, d')."""
    centre, radius = (
        tokens.new_tensor([float(Fraction(v)) for v in side]) for side in (network.centre, network.radius)
    )
    angle = ((tokens - centre) / radius).clamp(-1, 1).arccos()
    ops = TorchOperations(tokens.dtype, tokens.device)
    columns = []
    for factor, beta in features:
        b = evaluate(parse(factor, network.d, free_y=True), ops, Environment(y=tokens))[..., 0]
        columns.append(b * (angle * tokens.new_tensor(beta)).cos().prod(-1))
    return torch.stack(columns, dim=-1) if columns else tokens.new_zeros(len(tokens), 0)


def reduction_lines(network: ExpressionSumformer | MeshSumformer, tokens: Tensor) -> list[ValueLine]:
    """Every sum, mean, … of the formula, as the network approximates it at the first token, beside its own value."""
    inputs, lines = tokens.to(network.outside)[None], []
    found = network.reduced(inputs, network.summarise(inputs))
    for data, value in zip(network.reductions, found, strict=True):
        node = parse(data["reduction"], network.d)
        ideal = evaluate_tensor(node, tokens[None])
        for w in range(node.width):
            name = to_source(node) + (f"[{w}]" if node.width > 1 else "")
            lines.append(ValueLine(name, "reduction", None, "ψ", float(value[0, 0, w]), float(ideal[0, 0, w]), None))
    return lines


def _others(sums: list[ValueLine], alone: Tensor, phi: Tensor) -> list[ValueLine]:
    """q_β = Σ_β − T_β(u_1): what ψ multiplies."""
    return [
        replace(
            line,
            name=line.name.replace("Σ", "Σ_{j≠1}", 1),
            op="sum over others",
            block="ψ",
            computed=line.computed - float(alone[0, k]),
            ideal=float(phi[1:, k].sum()),
        )
        for k, line in enumerate(sums)
    ]


def _blocks(network: ExpressionSumformer | SymmetricSumformer, names: list[str]) -> tuple[BlockLine, ...]:
    d = network.latent_dimension
    if isinstance(network, SymmetricSumformer):
        inside = {"product of power sums of the others": len(network.products), "term": len(network.terms)}
    else:
        inside = {"kernel": len(network.kernels), "reduction": len(network.reductions)}
    return (
        BlockLine("φ", None, {"feature": d}, tuple((name, k) for k, name in enumerate(names))),
        BlockLine("Σ", None, {"sum over tokens": d}),
        BlockLine("ψ", None, inside),
    )
