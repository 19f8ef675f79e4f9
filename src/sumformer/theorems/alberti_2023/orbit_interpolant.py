"""I_N g = Σ_{α, B} c_{αB} T_α(u) Σ_{arrangements of B} Π_j T_{B_j}(v_j): tensor interpolation, a number per orbit.

Values at the Chebyshev nodes are computed once per multiset of the others' nodes; `error` bounds, in the sup norm over
the whole box, what rounding has changed: of the values (times Π Λ), and of the transform, step by step,
  A 2^d (4·4d·2⁻⁴⁹ + γ_A) · max over old nodes of the ℓ1 norm of the state · Π Λ of the axes still to come.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch

from sumformer.algebra import chebyshev
from sumformer.algebra.interval import Interval, concatenate
from sumformer.algebra.interval_operations import IntervalOperations
from sumformer.algebra.multisets import IntArray, Multisets
from sumformer.algebra.orbit_norm import OrbitBasis
from sumformer.algebra.orbit_tensors import transform
from sumformer.algebra.rounding import FloatArray, gamma
from sumformer.algebra.tracked import INFLATE, Tracked, TrackedOperations
from sumformer.errors import DomainError
from sumformer.nn.network_operations import NetworkOperations
from sumformer.targets.domain import Box
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.symmetric_degrees import Degrees
from sumformer.theorems.alberti_2023.token_values import token_value

U = 2.0**-53
CHUNK = 2**21  # numbers in one buffer
USEFUL = 1e-9  # a value error above this, bounded over the whole box at once, is bounded again node by node


@dataclass(frozen=True, eq=False)
class OrbitInterpolant:
    """`coefficients` (width, own types, multisets); `error` ≥ sup |Σ coefficients … − I_N g|."""

    basis: OrbitBasis
    coefficients: FloatArray
    error: float


def _types(degrees: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """The multi-indices up to these degrees, (types, d), by total degree; and their places in the tensor grid."""
    grid = np.meshgrid(*[np.arange(N + 1) for N in degrees], indexing="ij")
    types = np.stack(grid, axis=-1).reshape(-1, len(degrees))
    order = np.argsort(types.sum(axis=1), kind="stable")
    return types[order], order


def interpolate(f: Target, degrees: Degrees) -> OrbitInterpolant:
    """I_N g for the target at exactly n = m + 1 tokens."""
    values, value_error = _values(f, degrees)
    (own_types, own_order), (other_types, other_order) = _types(degrees.own), _types(degrees.others)
    own, others = (
        reduce(_kron, [chebyshev.transform_matrix(N) for N in side])[order]
        for side, order in ((degrees.own, own_order), (degrees.others, other_order))
    )
    m, d = degrees.m, f.d
    rest = degrees.other_lebesgue
    error = value_error * degrees.lebesgue
    error += _step_error(degrees.own_types, d) * float(np.abs(values).max()) * rest**m

    def watch(state: FloatArray, k: int) -> None:
        nonlocal error
        weights = Multisets(degrees.other_types, k).arrangements(k)
        mass = (np.abs(state) @ weights).reshape(len(state), f.width, -1).sum(axis=2).max()
        # a new type may stand at any of k + 1 places among those already transformed
        error += (k + 1) * _step_error(degrees.other_types, d) * float(mass) * rest ** (m - k - 1) * INFLATE

    coefficients = transform(values, own, others, m, watch)
    return OrbitInterpolant(OrbitBasis(own_types, other_types, m), coefficients, error * INFLATE)


def _kron(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.kron(a, b))


def _step_error(types: int, d: int) -> float:
    """Σ_b Σ_i |computed − exact| per unit of the largest entry: the matrix holds products of d cosines, dots add γ."""
    return float(types) * 2.0**d * (16 * d * chebyshev.COSINE_ERROR + gamma(types + 2, U)) * INFLATE


def _values(f: Target, degrees: Degrees) -> tuple[FloatArray, float]:
    """g at the nodes, (width, own types, multisets), and a bound of its error there."""
    own, others = _nodes(f.box, degrees.own), _nodes(f.box, degrees.others)
    members = Multisets(degrees.other_types, degrees.m).members[degrees.m]
    error = _error_on_box(f)
    if error > USEFUL:
        return _enclosed_values(f, own, others, members)
    x = torch.from_numpy(own)
    y = torch.from_numpy(np.ascontiguousarray(others[members.T]))  # (m, multisets, d)
    ops = NetworkOperations(torch.float64, x.device)
    values = np.empty((f.width, len(own), len(members)))
    step = max(1, CHUNK // max(1, y.numel() * max(1, f.width)))
    for start in range(0, len(own), step):
        some = slice(start, start + step)
        found = token_value(f.expression, ops, x[some, None], y[:, None], degrees.m)
        values[:, some] = found.expand(-1, len(members), f.width).movedim(-1, 0).numpy()
    if not bool(np.isfinite(values).all()):
        raise DomainError(f"{f.source} is not defined on the whole box {f.box}", f.source)
    return values, error


def _nodes(box: Box, degrees: tuple[int, ...]) -> FloatArray:
    """(types, d): the Chebyshev nodes, in the box's coordinates."""
    axes = [chebyshev.nodes(N) for N in degrees]
    t = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(degrees))
    centre, radius = ([float(q) for q in side] for side in (box.centre, box.radius))
    return np.asarray(np.array(centre) + np.array(radius) * t)


def _node_error(box: Box) -> FloatArray:
    """|computed node − exact node| per coordinate: the cosine's error, and five roundings."""
    centre, radius = (np.array([float(abs(q)) for q in side]) for side in (box.centre, box.radius))
    return np.asarray((radius * (chebyshev.COSINE_ERROR + 4 * U) + 5 * U * (centre + radius)) * INFLATE)


def _error_on_box(f: Target) -> float:
    """A bound of the rounding error of g at any node, from one evaluation over the whole box; ∞ where that fails."""
    m = f.tokens.maximum - 1
    lower, upper = (_ends(side) for side in (f.box.lower, f.box.upper))
    error = _node_error(f.box)
    token = Interval(np.minimum(lower.lo, upper.lo), np.maximum(lower.hi, upper.hi))
    own = Tracked(token, error)
    others = Tracked(token.broadcast_to((m, f.d)), np.broadcast_to(error, (m, f.d)))
    try:
        value = token_value(f.expression, TrackedOperations(U, 2.0**-1022, 1.7e308), own, others, m)
    except DomainError:
        return float("inf")
    return float(value.error.max())


def _ends(side: tuple[object, ...]) -> Interval:
    return concatenate([Interval.from_fraction(q)[None] for q in side])  # type: ignore[arg-type]


def _enclosed_values(f: Target, own: FloatArray, others: FloatArray, members: IntArray) -> tuple[FloatArray, float]:
    """The same by intervals around every node: slower, and needs nothing of g but that it is defined there."""
    around = _node_error(f.box)
    values = np.empty((f.width, len(own), len(members)))
    y = others[members.T][:, None]
    step = max(1, CHUNK // max(1, 4 * y.size * max(1, f.width)))
    error = 0.0
    for start in range(0, len(own), step):
        some = slice(start, start + step)
        x = own[some, None]
        enclosure = token_value(
            f.expression,
            IntervalOperations(),
            Interval(x - around, x + around),
            Interval(y - around, y + around),
            members.shape[1],
        ).broadcast_to((len(own[some]), len(members), f.width))
        if not bool(enclosure.defined.all()):
            raise DomainError(f"{f.source} could not be shown to be defined on the whole box {f.box}", f.source)
        values[:, some] = np.moveaxis(enclosure.mid(), -1, 0)
        error = max(error, float(enclosure.width().max()))
    return values, error
