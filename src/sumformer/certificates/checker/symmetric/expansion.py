"""Σ_t C_t T_{α_t}(x) Π_i q_{β_i} ↦ Σ c_{αB} T_α(x) Σ_{arrangements of B} Π_j T_{B_j}(y_j), q_β = Σ_j T_β(y_j).

One factor at a time: q_β times an arrangement sum multiplies one of the m places by T_β, T_a T_b = mean of T_{|a ± b|}
over the signs in each coordinate. In tensor entries: Σ_j over places, equal places merged with their number.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from sumformer.certificates.checker.chebyshev_grid import gamma
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.symmetric.files import Integers, Polynomial
from sumformer.certificates.checker.symmetric.orbits import arrangements
from sumformer.certificates.checker.verification import Unproved

MAX_STATES = 8_000_000


@dataclass(frozen=True, eq=False)
class Expansion:
    """own (K, d), others (K, m, d) sorted places, `entries` (K, width) of the tensor, each within `errors` of exact."""

    own: Integers
    others: Integers
    entries: Floats
    errors: Floats
    arrangements: Floats


class _Degrees:
    """Multi-indices as numbers in base `base`."""

    def __init__(self, net: Polynomial) -> None:
        depth = _depths(net)
        top = int(net.features.max(initial=0)) * max(1, int(depth.max(initial=0)))
        self.base, self.d = max(top, int(net.own.max(initial=0))) + 1, net.d
        if self.base**net.d > 2**31:
            raise Unproved("the features' degrees are too large")

    def pack(self, vectors: Integers) -> Integers:
        out = np.zeros(vectors.shape[:-1], dtype=np.int64)
        for c in range(self.d):
            out = out * self.base + vectors[..., c]
        return out

    def unpack(self, numbers: Integers) -> Integers:
        columns = []
        for _ in range(self.d):
            columns.append(numbers % self.base)
            numbers = numbers // self.base
        return np.stack(columns[::-1], axis=-1)

    def signed(self, a: Integers, b: Integers) -> list[Integers]:
        """The 2^d numbers of |a ± b|, each with weight 2^{−d}."""
        one, two = self.unpack(a), self.unpack(b)
        choices = [(one[..., c] + two[..., c], np.abs(one[..., c] - two[..., c])) for c in range(self.d)]
        return [self.pack(np.stack(pick, axis=-1)) for pick in itertools.product(*choices)]


def expand(net: Polynomial, weights: Floats) -> Expansion:
    """The network's polynomial in orbits; float64 with every rounding counted."""
    degrees, m = _Degrees(net), net.m
    factors = _factors(net)
    depth = (factors >= 0).sum(axis=1)
    alpha = degrees.pack(net.own)[net.terms[:, 0]]
    betas = degrees.pack(net.features)
    places = np.zeros((len(alpha), m), dtype=np.int64)
    # value, and the sum of the absolute values of all that flowed into it
    flow = np.concatenate([weights, np.abs(weights)], axis=1)
    roundings = 2
    for level in range(int(depth.max(initial=0))):
        live = factors[:, level] >= 0
        done = [(alpha[~live], places[~live], factors[~live], flow[~live])]
        a, p, rest, w = alpha[live], places[live], factors[live], flow[live]
        beta = betas[rest[:, level]]
        rest = rest.copy()
        rest[:, level] = -1
        for j in range(m):
            # places are sorted: one of a run of equals stands for the run
            first = np.ones(len(p), dtype=bool) if j == 0 else p[:, j] != p[:, j - 1]
            count = (p[first] == p[first, j : j + 1]).sum(axis=1).astype(np.float64)
            for number in degrees.signed(p[first, j], beta[first]):
                q = p[first].copy()
                q[:, j] = number
                q.sort(axis=1)
                done.append((a[first], q, rest[first], _entry_weight(p[first], q, count, net.d)[:, None] * w[first]))
        alpha, places, factors, flow, most = _merged(*(np.concatenate(part) for part in zip(*done, strict=True)))
        if len(alpha) > MAX_STATES:
            raise Unproved("the products of the power sums have too many terms")
        roundings += most + 4
    alpha, places, factors, flow, most = _merged(alpha, places, factors, flow)
    width = net.width
    errors = gamma(2 * (roundings + most)) * flow[:, width:] * (1 + 1e-9) + 1e-300
    expanded = degrees.unpack(places)
    return Expansion(degrees.unpack(alpha), expanded, flow[:, :width], errors, arrangements(places))


def _entry_weight(p: Integers, q: Integers, count: Floats, d: int) -> Floats:
    """From an entry of the orbit p to one of q: 2^{−d} · count · #arrangements(p)/#arrangements(q).

    Σ over arrangements of p of Σ_j (place j times T_β): a place of p's run of `count` equals is hit count times per
    arrangement; spread evenly over the arrangements of q.
    """
    return 0.5**d * count * arrangements(p) / arrangements(q)


def _merged(
    alpha: Integers, places: Integers, factors: Integers, flow: Floats
) -> tuple[Integers, Integers, Integers, Floats, int]:
    """Equal rows added up; last, how many were added at most."""
    rows = np.column_stack([alpha, places, factors])
    keys = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:  # ranks of prefixes, so that a key never exceeds rows × values
        values, place = np.unique(column, return_inverse=True)
        keys = np.unique(keys * len(values) + place, return_inverse=True)[1]
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    most = int(np.diff(starts, append=len(order)).max(initial=1))
    first = order[starts]
    total = np.add.reduceat(flow[order], starts, axis=0) if len(order) else flow
    return alpha[first], places[first], factors[first], total, most


def _factors(net: Polynomial) -> Integers:
    """(terms, most factors): the features of each term's node, ascending, then −1."""
    lists: list[list[int]] = [[]]
    for parent, factor in net.products.tolist():
        lists.append([*lists[parent], factor])
    chosen = [sorted(lists[p]) for p in net.terms[:, 1]]
    out = np.full((len(chosen), max(map(len, chosen), default=0)), -1, dtype=np.int64)
    for row, found in zip(out, chosen, strict=True):
        row[: len(found)] = found
    return out


def _depths(net: Polynomial) -> Integers:
    depth = [0]
    for parent, _ in net.products.tolist():
        depth.append(depth[parent] + 1)
    return np.array(depth, dtype=np.int64)
