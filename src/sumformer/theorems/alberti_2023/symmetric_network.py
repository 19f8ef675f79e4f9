"""S = Σ kept orbits as a `SymmetricSumformer`: power sums of the others, one trie of products, and what rounding adds.

Coefficients: |C − exact| · m^{factors}, summed over the terms, for |q_β| ≤ m. Evaluation: with τ the errors of the
tables, e_β = (n+1)τ_β + γ of the sum, every term by at most
  |C_t| ((1 + τ_α) Π_β (m + e_β) (1 + γ_{T + factors + 3}) − m^{factors}).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from sumformer.algebra.chebyshev_power_sums import chebyshev_power_sums
from sumformer.algebra.multisets import IntArray
from sumformer.algebra.rounding import FloatArray, gamma, sum_up
from sumformer.algebra.tracked import INFLATE
from sumformer.nn.symmetric_sumformer import SymmetricSumformer
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.roundings import LARGEST_TABLE_ERROR, MAX_DEGREE, table_errors
from sumformer.theorems.alberti_2023.symmetric_support import Support


@dataclass(frozen=True, eq=False)
class SymmetricNetwork:
    """The network and two bounds: of its stored coefficients against S, and of its rounding when it runs."""

    network: SymmetricSumformer
    coefficients: float
    rounding: float


def symmetric_network(f: Target, support: Support, arithmetic: Arithmetic) -> SymmetricNetwork:
    """The network of a support, for exactly n tokens."""
    m, d = f.tokens.maximum - 1, f.d
    parts = [chebyshev_power_sums(support.own, support.others, c, m) for c in support.coefficients]
    width = max(p.factors.shape[1] for p in parts)
    rows = [np.concatenate([p.own, _padded(p.factors, width).reshape(len(p.own), width * d)], axis=1) for p in parts]
    terms, inverse = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
    if not len(terms):  # a target that is 0 in float64
        terms = np.zeros((1, d + width * d), dtype=np.int64)
    exact, error = np.zeros((len(terms), f.width)), np.zeros((len(terms), f.width))
    start = 0
    for component, part in enumerate(parts):
        places = inverse.reshape(-1)[start : start + len(part.own)]
        exact[places, component], error[places, component] = part.coefficients, part.errors
        start += len(part.own)
    stored = exact.astype(arithmetic.dtype).astype(np.float64)
    own, own_index = np.unique(terms[:, :d], axis=0, return_inverse=True)
    features, products, nodes = _trie(terms[:, d:].reshape(len(terms), width, d))
    network = SymmetricSumformer(
        d=d,
        tokens=m + 1,
        width=f.width,
        centre=[str(c) for c in f.box.centre],
        radius=[str(r) for r in f.box.radius],
        arithmetic=arithmetic.name,
        own=own.tolist(),
        features=features.tolist(),
        products=products,
        terms=np.column_stack([own_index.reshape(-1), nodes]).tolist(),
    )
    with torch.no_grad():
        network.coefficients.copy_(torch.from_numpy(stored))
    powers = float(m) ** terms[:, d:].reshape(len(terms), width, d).any(axis=2).sum(axis=1)
    tiny = float(np.finfo(arithmetic.dtype).smallest_normal)
    changed = (error + np.abs(exact - stored) * INFLATE + tiny) * powers[:, None]
    moved = max(sum_up(column) for column in changed.T) * INFLATE
    return SymmetricNetwork(network, moved, _rounding(f, network, stored, support.mass + moved, arithmetic))


def _padded(factors: IntArray, width: int) -> IntArray:
    """(terms, width, d), each row's factors in one order: a product has no other."""
    terms, count, d = factors.shape
    wide = np.concatenate([factors, np.zeros((terms, width - count, d), dtype=factors.dtype)], axis=1)
    keys = np.zeros((terms, width), dtype=np.int64)
    for c in range(d):
        keys = keys * MAX_DEGREE + wide[:, :, c]
    return np.take_along_axis(wide, np.argsort(-keys, axis=1, kind="stable")[:, :, None], axis=1)


def _trie(factors: IntArray) -> tuple[IntArray, list[list[int]], IntArray]:
    """factors (terms, r, d), zeros last → the features β, the nodes [parent, feature] by level, each term's node.

    Features that occur more often come first in a product, so that more prefixes are shared.
    """
    terms, width, d = factors.shape
    used = factors.any(axis=2)
    features, inverse, counts = np.unique(factors[used], axis=0, return_inverse=True, return_counts=True)
    rank = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
    ids = np.full((terms, width), len(features))
    ids[used] = rank[inverse.reshape(-1)]
    ids = np.sort(ids, axis=1)
    features = features[np.argsort(-counts, kind="stable")] if len(features) else np.zeros((0, d), dtype=np.int64)
    node = np.zeros(terms, dtype=np.int64)
    products: list[list[int]] = []
    for k in range(width):
        alive = ids[:, k] < len(features)
        if not alive.any():
            break
        pairs, place = np.unique(np.column_stack([node[alive], ids[alive, k]]), axis=0, return_inverse=True)
        node[alive] = len(products) + 1 + place.reshape(-1)
        products += pairs.tolist()
    return features, products, node


def _rounding(
    f: Target, network: SymmetricSumformer, stored: FloatArray, largest: float, arithmetic: Arithmetic
) -> float:
    """sup |N(X) − its polynomial(X)|; ∞ where nothing can be claimed."""
    u, tiny, m = arithmetic.u, arithmetic.tiny, network.tokens - 1
    if max(network.degrees) >= MAX_DEGREE:
        return float("inf")
    tau = table_errors(f.box, arithmetic, u)
    own, features = (_feature_errors(tau, k, u, tiny) for k in (network.own, network.features))
    if max(own.max(initial=0.0), features.max(initial=0.0)) > LARGEST_TABLE_ERROR:
        return float("inf")
    n = m + 1.0
    sums = (n + 1) * features + (gamma(network.tokens + 2, u) + 3 * u) * 1.01 * n * (1 + features) + 4 * n * tiny
    exact, computed, depth = [1.0], [1.0], [0]
    for parent, feature in network.products:
        exact.append(exact[parent] * m)
        computed.append(computed[parent] * (m + float(sums[feature])))
        depth.append(depth[parent] + 1)
    place = np.array([p for _, p in network.terms])
    which = np.array([a for a, _ in network.terms])
    roundings = np.array([gamma(len(network.terms) + k + 3, u) for k in range(max(depth) + 1)])[np.array(depth)[place]]
    size, grown = np.array(exact)[place], np.array(computed)[place] * (1 + own[which]) * (1 + roundings)
    # the difference is itself rounded: 2⁻⁵⁰ of the larger
    gaps = (grown - size + 2.0**-50 * grown * (np.array(depth)[place] + 4)) * INFLATE
    underflows = 4 * tiny * (1 + np.array(computed)[place]) * (np.array(depth)[place] + 2)
    magnitudes = np.abs(stored)
    error = max(sum_up(c * gaps + (c + 1) * underflows) for c in magnitudes.T)
    if max(sum_up(c * grown) for c in magnitudes.T) > arithmetic.huge:
        return float("inf")
    if arithmetic.u_out:
        error += arithmetic.u_out * (largest + error) + arithmetic.tiny_out
    return error * INFLATE if largest + error <= arithmetic.huge_out else float("inf")


def _feature_errors(tau: FloatArray, indices: list[list[int]], u: float, tiny: float) -> FloatArray:
    """|Π_c T̂_{k_c} − Π_c T_{k_c}| ≤ Π_c (1 + τ)(1 + u) − 1, plus what underflows."""
    if not indices:
        return np.zeros(0)
    k = np.array(indices)
    relative = sum(tau[c, k[:, c]] for c in range(k.shape[1])) + 1.01 * u * (k.shape[1] - 1)
    return np.asarray(np.expm1(relative * 1.001) * INFLATE + 4 * k.shape[1] * tiny)
