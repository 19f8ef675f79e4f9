"""The first stack takes t ∈ [k, k+1−e] to k, exactly in float64, in every coordinate: e is read off the weights.

A layer for cell k has W₁ = e_i and kinks k, k+1−e, k+1, the slope −1 on the first stretch: t − (t − k) = k. Layers come
from the last cell to the first, so that an entry above k is a whole number by then, and these are run exactly. Before
them a layer may stand that is idle on [0, count−e].
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sumformer.certificates.checker.deep.dyadic import U
from sumformer.certificates.checker.deep.files import Floats, Network, Stack
from sumformer.certificates.checker.deep.simulation import State, step
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.domain import Box


@dataclass(frozen=True)
class Quantiser:
    """q cells per coordinate of the box, the widest `ramp` between two, the `share` not covered, each token's place."""

    q: int
    ramp: Fraction
    share: float
    places: tuple[int, ...] | None


def read_quantiser(network: Network, box: Box, q: int) -> Quantiser:
    """`q` is what the certificate says; everything else comes from the weights."""
    if not network.layers or not isinstance(network.layers[0], Stack):
        raise Unproved("the network does not begin with a stack of quantising layers")
    if np.any(network.layers[0].W2[:, network.d :] != 0):
        raise Unproved("a quantising layer writes to coordinates beyond those of the tokens")
    places = _places(network, q)
    count = q if places is None else network.n * q
    e = max(_coordinate(network.layers[0], i, count) for i in range(network.d))
    return Quantiser(q, e, float(e) + 2 * _misplaced(network, box, q), places)


def _places(network: Network, q: int) -> tuple[int, ...] | None:
    if network.places is None:
        return None
    own, rest = network.places[:, : network.d], network.places[:, network.d :]
    places = own[:, 0] / q
    if not bool((own == own[:, :1]).all() and (rest == 0).all()) or sorted(places) != list(range(network.n)):
        raise Unproved("positions do not move the tokens to the cells of 0, 1, …, n−1")
    return tuple(int(v) for v in places)


def _misplaced(network: Network, box: Box, q: int) -> float:
    """|W x + b + place, in float64, − the place in exact cells|, in cells."""
    weight, bias = network.embedding
    if np.any(bias[network.d :] != 0) or np.any(weight[network.d :] != 0):
        raise Unproved("the embedding uses coordinates beyond those of the tokens")
    if np.any(weight[: network.d] != np.diag(np.diag(weight[: network.d]))):
        raise Unproved("the embedding mixes coordinates")
    worst = 0.0
    for i, (low, high) in enumerate(zip(box.lower, box.upper, strict=True)):
        a, b, far = Fraction(float(weight[i, i])), Fraction(float(bias[i])), max(abs(low), abs(high))
        ideal = q / (high - low)
        off = abs(a - ideal) * far + abs(b + ideal * low)
        mass = abs(a) * far + abs(b) + network.n * q
        worst = max(worst, float(off) + 6 * U * float(mass))
    if not worst < 0.5:
        raise Unproved("the embedding does not take the box to the cells")
    return worst * (1 + 1e-9)


def _coordinate(stack: Stack, i: int, count: int) -> Fraction:
    """e of coordinate i."""
    rows = [int(row) for row in np.flatnonzero((stack.W2[:, i] != 0).any(1))]
    others = np.delete(stack.W2[rows], i, 1)
    if np.any(others != 0) or np.any(np.delete(stack.W1[rows], i, 2) != 0):
        raise Unproved("a quantising layer mixes coordinates")
    cells, e = list(reversed(range(count))), Fraction(0)
    idle, rows = rows[: len(rows) - count], rows[len(rows) - count :]
    if len(rows) != count or len(idle) > 1:
        raise Unproved(f"expected {count} quantising layers for each coordinate")
    for k, row in zip(cells, rows, strict=True):
        e = max(e, _cell(stack.W1[row, :, i], stack.b1[row], stack.W2[row, i], k))
    for row in idle:
        _idle(stack.W1[row, :, i], stack.b1[row], Fraction(count) - e)
    _whole_numbers(stack, rows, i, count)
    return e


def _cell(w1: Floats, b1: Floats, w2: Floats, k: int) -> Fraction:
    """One layer: active units with their kinks, the first at k with slope −1, the next at k+1−e."""
    used = np.flatnonzero(w2)
    kinks = sorted((-float(b1[r]), float(w2[r])) for r in used)
    if not kinks or np.any(w1[used] != 1) or kinks[0] != (float(k), -1.0) or len(kinks) < 2:
        raise Unproved(f"a quantising layer does not take cell {k} to its corner")
    e = Fraction(k + 1) - Fraction(kinks[1][0])
    if not 0 < e < 1:
        raise Unproved(f"the ramp of cell {k} has width {e}")
    return e


def _idle(w1: Floats, b1: Floats, end: Fraction) -> None:
    """All units are ≤ 0 on [0, end]."""
    at_ends = [(Fraction(float(b)), Fraction(float(w)) * end + Fraction(float(b))) for w, b in zip(w1, b1, strict=True)]
    if any(max(pair) > 0 for pair in at_ends):
        raise Unproved("the out-of-range layer acts on inputs that are in range")


def _whole_numbers(stack: Stack, rows: list[int], i: int, count: int) -> None:
    """j ∈ {0, …, count−1} stays j through the layers of cells k ≤ j, exactly."""
    width = stack.W1.shape[2]
    start = np.zeros((count, 1, width))
    start[:, 0, i] = np.arange(count)
    for position, row in enumerate(rows):
        part = start[count - 1 - position :]  # j ≥ k
        state = State(part, np.zeros_like(part), np.ones(len(part), dtype=np.bool_))
        step(state, stack, row)
        if np.any(state.radius > 0) or np.any(state.z != part):
            raise Unproved("a quantising layer moves a whole number")
