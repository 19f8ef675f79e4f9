"""sup |N − its polynomial| in the stated arithmetic: tables, sums over tokens, products along the trie.

q̂_β = fl(Σ̂_β − T̂_β): with τ the error of a feature, n features err by nτ, their sum in any order by γ_{n−1} n(1 + τ),
the own one by τ, the difference by u. A product of r factors, of size m^r, errs by (m + e_1)…(m + e_r) − m^r, and all
roundings on the way of a term, r products, T_α and a dot product of length T, by γ_{r+1+T}.
"""

from __future__ import annotations

import math

import numpy as np

from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.features import combine, table_error
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.symmetric.files import Integers, Polynomial


def rounding(net: Polynomial, weights: Floats, size: float) -> float:
    """The bound, the last rounding to the output's dtype included; `size` ≥ sup |polynomial|."""
    a = Arithmetic.named(net.arithmetic)
    own, features = _feature_errors(net, net.own, a), _feature_errors(net, net.features, a)
    n, m = net.tokens, net.m
    sums = (n + 1) * features + a.gamma(n - 1) * n * (1 + features) + 2 * n * a.tiny
    sums = sums + a.u * (m + sums) + a.tiny
    sizes, errors, depth = [1.0], [0.0], [0]
    for parent, factor in net.products.tolist():
        e = float(sums[factor])
        errors.append(errors[parent] * (m + e) + sizes[parent] * e + a.tiny)
        sizes.append(sizes[parent] * m)
        depth.append(depth[parent] + 1)
    which, node = net.terms[:, 0], net.terms[:, 1]
    exact, error, tau = np.array(sizes)[node], np.array(errors)[node], own[which]
    roundings = np.array([a.gamma(r + 1 + len(net.terms)) for r in range(max(depth) + 1)])[np.array(depth)[node]]
    grown = (exact + error) * (1 + tau)
    each = error * (1 + tau) + exact * tau + grown * roundings
    mass = np.abs(weights)
    underflow = 2 * a.tiny * (float(mass.sum(axis=0).max(initial=0.0)) + len(net.terms))
    total = float((mass * each[:, None]).sum(axis=0).max(initial=0.0)) * (1 + 1e-9) + underflow
    largest = float((mass * grown[:, None]).sum(axis=0).max(initial=0.0))
    highest = max(
        float((np.array(sizes) + np.array(errors)).max()), float(grown.max(initial=0.0))
    )  # whatever the weight
    if not (math.isfinite(total) and 4 * max(largest, highest) < a.huge):
        return math.inf
    return a.rounded_out(total, size) * (1 + 1e-12)


def _feature_errors(net: Polynomial, indices: Integers, a: Arithmetic) -> Floats:
    """|Π_c T̂_{k_c} − Π_c T_{k_c}| for a product from the first coordinate on: Π (1 + τ_c)(1 + u) − 1."""
    out = []
    tables = [table_error(a, net.centre[c], net.radius[c], int(net_degree(net, c))) for c in range(net.d)]
    for k in indices.tolist():
        parts = [float(tables[c][k[c]]) for c in range(net.d)]
        out.append(combine(*parts, *([a.u] * (net.d - 1))) + 2 * net.d * a.tiny)
    return np.array(out)


def net_degree(net: Polynomial, c: int) -> int:
    """The largest degree in coordinate c."""
    return max(int(net.own[:, c].max(initial=0)), int(net.features[:, c].max(initial=0)))
