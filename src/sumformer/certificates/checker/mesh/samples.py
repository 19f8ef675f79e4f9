"""The stored samples beside K at the differences of nodes, enclosed: S[e] and k((e − G + 1) h)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, from_fraction
from sumformer.certificates.checker.mesh.network import MeshNetwork
from sumformer.certificates.checker.verification import Unproved

AT_A_TIME = 2**20  # enclosures that are held
_UP = 1 + 1e-12


@dataclass(frozen=True)
class Comparison:
    """Bounds of max |S − k| from above and below, of max |S − k|/|k|, and the range of k where the box has such
    differences, |e|h ≤ 2·radius."""

    gap: float
    least: float
    share: float
    range: tuple[float, float]


def compared(net: MeshNetwork, g: int, samples: Floats) -> Comparison:
    """Some planes along the first axis at a time."""
    mesh = net.meshes[g]
    rows = max(1, AT_A_TIME // math.prod(mesh.differences[1:]))
    gap = least = share = 0.0
    low, high = math.inf, -math.inf
    for first in range(0, mesh.differences[0], rows):
        piece = slice(first, min(first + rows, mesh.differences[0]))
        exact, S = _exact(net, g, piece), samples[piece]
        off = np.maximum(S - exact.lo, exact.hi - S)
        if not bool(np.isfinite(off).all()):
            raise Unproved("K − S is not finite at the differences of nodes")
        gap = max(gap, float(off.max()))
        least = max(least, float(np.maximum(exact.lo - S, S - exact.hi).max()))
        size = exact.mignitude
        share = max(share, float((off / size).max())) if bool((size > 0).all()) else math.inf
        inside = _in_the_box(mesh.intervals, mesh.nodes, piece)
        low = min(low, float(exact.lo[inside].min(initial=math.inf)))
        high = max(high, float(exact.hi[inside].max(initial=-math.inf)))
    return Comparison(gap * _UP, least * (1 - 1e-12), share * _UP, (low, high))


def _exact(net: MeshNetwork, g: int, piece: slice) -> Interval:
    """k there, every sub-expression on the axes it mentions."""
    coordinates, shape = net.sums.kernels[g].coordinates, net.meshes[g].differences
    ops, z = IntervalOperations(), {}
    for axis, (c, h, G) in enumerate(zip(coordinates, net.spacings(g), net.meshes[g].nodes, strict=True)):
        e = np.arange(1.0 - G, G)
        e = (e[piece] if axis == 0 else e).reshape(tuple(-1 if a == axis else 1 for a in range(len(shape))))
        z[c] = ops.mul(from_fraction(h), Interval(e, e))
    return net.kernel(g).value(ops, z).broadcast_to((piece.stop - piece.start, *shape[1:]))


def _in_the_box(intervals: tuple[int, ...], nodes: tuple[int, ...], piece: slice) -> tuple[slice, ...]:
    """Of the planes of `piece`."""
    first, *others = (slice(G - 1 - m, G + m) for G, m in zip(nodes, intervals, strict=True))
    ends = (max(first.start - piece.start, 0), max(first.stop - piece.start, 0))
    return slice(*ends), *others
