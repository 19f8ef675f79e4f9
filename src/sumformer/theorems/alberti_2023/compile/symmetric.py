"""The Sumformer of route symmetric as a program: ψ = Σ_α T_α(u) Σ_t C_t Π_β q_β, its products shared as a trie.

q_β = Σ_{j≠i} T_β(u_j) = n·mean T_β − T_β(u) ∈ [−(n−1), n−1] enters as m_β = q_β/(n−1) ∈ [−1, 1], so that all products
of the trie stay in [−1, 1]; the powers of n − 1 go into the coefficients.
"""

from __future__ import annotations

from sumformer.gadgets.saw import Prefer
from sumformer.nn.symmetric_sumformer import SymmetricSumformer
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.compile.features import Features
from sumformer.theorems.alberti_2023.compile.functional import Functional, total
from sumformer.theorems.alberti_2023.compile.program import Program, constant
from sumformer.theorems.alberti_2023.compile.tree import TreeCompiler


def symmetric_program(network: SymmetricSumformer, box: Box, prefer: Prefer) -> tuple[Program, tuple[Functional, ...]]:
    """The network's own trie and coefficients, value by value."""
    program = Program(prefer)
    features = Features(program, box, TreeCompiler(program, box, _no_reduction))
    others = [_others(program, features.tensor(tuple(beta)), network.tokens) for beta in network.features]
    nodes, depth = [constant(1)], [0]
    for parent, feature in network.products:
        node = program.product(nodes[parent], others[feature])
        nodes.append(_unit(program, node))
        depth.append(depth[parent] + 1)
    coefficients = network.coefficients.detach().double().tolist()
    outputs = []
    for w in range(network.width):
        parts: dict[int, list[Functional]] = {}
        for (a, p), row in zip(network.terms, coefficients, strict=True):
            parts.setdefault(a, []).append(nodes[p].scaled(row[w] * (network.tokens - 1) ** depth[p]))
        outputs.append(
            total(program.product(features.tensor(tuple(network.own[a])), total(terms)) for a, terms in parts.items())
        )
    return program, tuple(program.read(f) for f in outputs)


def _others(program: Program, feature: Functional, n: int) -> Functional:
    """m_β = (n·mean T_β − T_β(u))/(n − 1), the mean over the others."""
    if n == 1:
        return constant(0)
    mean = total(program.mean(Functional.of({v: 1.0})).scaled(w) for v, w in feature.terms).shifted(feature.offset)
    f = mean.scaled(n / (n - 1)) + feature.scaled(-1 / (n - 1))
    return program.sum(f, (-1.0, 1.0), {"others": n}, name="others")


def _unit(program: Program, f: Functional) -> Functional:
    """Products of numbers in [−1, 1] stay there."""
    for v, _ in f.terms:
        value = program.values[v]
        if value.op in ("product", "function"):
            value.lo, value.hi = max(value.lo, -1.0), min(value.hi, 1.0)
    return f


def _no_reduction(node: object, c: int) -> Functional:
    raise AssertionError("a polynomial in power sums has no reductions left")
