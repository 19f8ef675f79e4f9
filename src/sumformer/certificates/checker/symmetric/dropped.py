"""sup |I_N g − S| for the network's polynomial S, both in orbits of Chebyshev products.

I_N g − S = P + Q, P the interpolant without the orbits S keeps, Q all else (roundings of the kept ones, crumbs of S
elsewhere); Q by its mass Σ|c|. In angles u = cos θ, P is a sum of waves; along a line from a point where |P| is largest
it is of exponential type σ, so |P| ≥ ‖P‖ cos(σ s) while σ s ≤ π (Duffin and Schaeffer). Zeros of T_{M_x}, T_{M_y} come
within π/(2M) of every angle: for the terms with |α|/M_x + |B|/M_y ≤ τ,
  ‖P‖ ≤ max over the grid |P| / cos(τ π/2),
and the other terms by their mass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, log, pi, prod

import numpy as np

from sumformer.certificates.checker.chebyshev_grid import gamma, values_at_nodes
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.symmetric.expansion import Expansion
from sumformer.certificates.checker.symmetric.files import Constants, Integers
from sumformer.certificates.checker.symmetric.node_values import NodeValues, types
from sumformer.certificates.checker.symmetric.orbits import apply, arrangements, largest_state, members, rank

BUFFER = 2**20  # numbers in the largest state
_ENTRY = 2.0**-50  # of a stored cosine and two roundings


@dataclass(frozen=True)
class Dropped:
    """`rest` ≥ sup |P| with the interpolation's `rounding`, `moved` ≥ sup |Q|, `size` ≥ sup |S|.

    `kept`: the orbits of S, as few and as many as they may be: one no larger than rounding may count or not.
    """

    rest: float
    moved: float
    size: float
    kept: tuple[int, int]
    rounding: float


def interpolant(values: NodeValues, own: Sequence[int], others: Sequence[int], m: int) -> tuple[Floats, float]:
    """Coefficients (width, own types, multisets) of I_N g, and the sup norm of what rounding changes.

    A step with a matrix of A types errs in each entry by (2^d/A)(d·entry + γ) Σ_i |state|; summed over the new types,
    each of which may stand in k + 1 places of the new multiset, and over the old ones, A 2^d (k + 1)(…) times the
    largest mass of the state; the axes still to come multiply sup norms by Λ each.
    """
    d = len(own)
    mine, theirs = _matrix(own), _matrix(others)
    rest = prod(_lebesgue(N) for N in others)
    error = values.error * prod(_lebesgue(N) for N in own) * rest**m
    error += _step(len(mine), d) * float(np.abs(values.middle).max(initial=0.0)) * rest**m
    parts = []
    rows = max(1, BUFFER // largest_state(len(theirs), len(theirs), m))
    for component in values.middle:
        lost, found = 0.0, []
        for start in range(0, len(mine), rows):

            def watch(state: Floats, k: int) -> None:
                nonlocal lost
                weights = arrangements(members(len(theirs), k))
                mass = float(np.einsum("qpr,p->q", np.abs(state), weights).max()) * (1 + 1e-9)
                lost += _step(len(theirs), d) * (k + 1) * mass * rest ** (m - k - 1)

            found.append(apply(component, mine[start : start + rows], theirs, m, watch))
        error += lost
        parts.append(np.concatenate(found))
    return np.stack(parts), error * (1 + 1e-9)


def dropped(values: NodeValues, expansion: Expansion, recorded: Constants, m: int) -> Dropped:
    """The bounds, each the largest over components."""
    own, others = types(recorded.own), types(recorded.others)
    coefficients, error = interpolant(values, recorded.own, recorded.others, m)
    a, b, inside = _places(expansion, recorded, m)
    weight = expansion.arrangements
    tiny = (np.abs(coefficients[:, a, b]) * weight[inside] <= 8 * error).all(axis=0)
    doubtful = int((tiny & (expansion.entries[inside] != 0).any(axis=1)).sum())
    moved, kept = 0.0, np.zeros(len(a), dtype=bool)
    size = 0.0
    for component, s, e in zip(coefficients, expansion.entries.T, expansion.errors.T, strict=True):
        c = component[a, b]
        same = np.abs(c - s[inside]) <= 0.5 * np.abs(c)
        gap = np.abs(s)
        gap[inside] = np.where(same, np.abs(c - s[inside]), gap[inside])
        component[a[same], b[same]] = 0.0
        kept |= same & (np.abs(c) * weight[inside] > 8 * error)
        moved = max(moved, _sum((gap * (1 + 1e-12) + e) * weight))
        size = max(size, _sum((np.abs(s) + e) * weight))
    rest = max(_norm(component, own, others, m, recorded.grid) for component in coefficients)
    surely = int(kept.sum())
    return Dropped(rest + error, moved, size, (surely, surely + doubtful), error)


def _places(expansion: Expansion, recorded: Constants, m: int) -> tuple[Integers, Integers, Integers]:
    """Rows and columns of the orbits of S within the interpolant's degrees, and which these are."""
    within = (expansion.own <= np.array(recorded.own)).all(axis=1)
    within &= (expansion.others <= np.array(recorded.others)).all(axis=(1, 2))
    inside = np.flatnonzero(within)
    a = _numbers(recorded.own)[tuple(expansion.own[inside].T)]
    places = np.sort(_numbers(recorded.others)[tuple(np.moveaxis(expansion.others[inside], -1, 0))], axis=1)
    return a, rank(places.reshape(len(inside), m)), inside


def _numbers(degrees: Sequence[int]) -> Integers:
    """The place in `types` of every multi-index."""
    out = np.empty([N + 1 for N in degrees], dtype=np.int64)
    out[tuple(types(degrees).T)] = np.arange(out.size)
    return out


def _norm(c: Floats, own: Integers, others: Integers, m: int, grid: tuple[int, int, Fraction] | None) -> float:
    """sup |Σ c T_α Σ_{arrangements} Π T_B|."""
    chosen = members(len(others), m)
    weight = arrangements(chosen)
    if grid is None:
        return _sum(np.abs(c) * weight)
    (mx, my, tau), degree = grid, others.sum(axis=1)[chosen].sum(axis=1)
    reach = own.sum(axis=1)[:, None] * my + degree[None, :] * mx
    held = reach * tau.denominator <= tau.numerator * mx * my
    crumbs, mass = _sum(np.abs(c[~held]) * np.broadcast_to(weight, c.shape)[~held]), _sum(np.abs(c * held) * weight)
    low = np.where(held, c, 0.0)
    peak = _peak(low, own, others, m, mx, my)
    lost = mass * 2 * (m + 1) * (2 * own.shape[1] * _ENTRY + gamma(max(len(own), len(others)) + 2))
    shrink = math.cos(float(tau) * pi / 2) - 1e-12
    return ((peak + lost) / shrink + crumbs) * (1 + 1e-9) if shrink > 0 and math.isfinite(peak) else math.inf


def _peak(c: Floats, own: Integers, others: Integers, m: int, mx: int, my: int) -> float:
    """max |P| over the grid."""
    used = c != 0
    if not used.any():
        return 0.0
    rows = int(np.flatnonzero(used.any(axis=1))[-1]) + 1
    last = members(len(others), m)[used.any(axis=0)].max(initial=0)
    count = comb(int(last) + m, m)  # multisets of the types up to the last one used
    mine, theirs = _at_zeros(own[:rows], mx), _at_zeros(others[: int(last) + 1], my)
    step = max(1, BUFFER // largest_state(theirs.shape[1], len(theirs), m))
    peak = 0.0
    for start in range(0, len(mine), step):
        found = float(np.abs(apply(c[:rows, :count], mine[start : start + step], theirs, m)).max())
        peak = max(peak, math.inf if math.isnan(found) else found)
    return peak


def _at_zeros(indices: Integers, count: int) -> Floats:
    """Π_c T_{k_c} on the tensor grid of the zeros of T_count: (points, indices)."""
    table = values_at_nodes(int(indices.max(initial=0)), count)
    out = np.ones((1, len(indices)))
    for c in range(indices.shape[1]):
        out = (out[:, None, :] * table[indices[:, c]].T[None]).reshape(-1, len(indices))
    return out


def _matrix(degrees: Sequence[int]) -> Floats:
    """c = matrix · values: Π_c (2 − [k_c = 0])/(N_c + 1) T_{k_c}(node), types and nodes in the order of `types`."""
    order = types(degrees)
    out = np.ones((len(order), len(order)))
    for c, N in enumerate(degrees):
        table = values_at_nodes(N, N + 1) * np.where(np.arange(N + 1) == 0, 1.0, 2.0)[:, None] / (N + 1)
        out *= table[order[:, c][:, None], order[:, c][None, :]]
    return out


def _step(count: int, d: int) -> float:
    return count * 2.0**d * (2 * d * 4 * _ENTRY + 1.01 * gamma(count + 2))


def _lebesgue(N: int) -> float:
    return (2 / pi * log(N + 1) + 1) * (1 + 1e-12)


def _sum(values: Floats) -> float:
    """Of numbers ≥ 0, rounded up."""
    return float(values.sum()) * (1 + 1e-9)
