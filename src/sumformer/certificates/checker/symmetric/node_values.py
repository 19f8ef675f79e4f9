"""g at the Chebyshev nodes of its tokens, one interval per own node and multiset of the others' nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sumformer.certificates.checker.chebyshev_grid import nodes
from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, from_fraction
from sumformer.certificates.checker.symmetric.files import Integers
from sumformer.certificates.checker.symmetric.orbits import members
from sumformer.certificates.checker.token_values import ListedIntervals, body_value, fold, leaf_at
from sumformer.certificates.checker.tree_values import components
from sumformer.targets.domain import Box
from sumformer.targets.node import Node
from sumformer.targets.tree import Reduce
from sumformer.targets.walk import postorder, reductions

BUFFER = 2**20  # values at a time
_REAL = IntervalOperations()


@dataclass(frozen=True)
class NodeValues:
    """`middle` (width, own nodes, multisets), each within `error` of g."""

    middle: Floats
    error: float


def types(degrees: Sequence[int]) -> Integers:
    """The multi-indices up to these degrees, (types, d), by total degree, then as in counting."""
    grid = np.stack(np.meshgrid(*[np.arange(N + 1) for N in degrees], indexing="ij"), axis=-1).reshape(-1, len(degrees))
    return grid[np.argsort(grid.sum(axis=1), kind="stable")]


def node_values(expression: Node, box: Box, own: Sequence[int], others: Sequence[int], m: int) -> NodeValues:
    """Nodes are numbered like `types`: coordinate c of node k is the k_c-th zero of T_{N_c+1}."""
    x, y = _tokens(box, own), _tokens(box, others)
    chosen = members(len(types(others)), m)
    count = len(types(own))
    middle, error = np.empty((expression.width, count, len(chosen))), 0.0
    step = max(1, BUFFER // len(chosen))
    for start in range(0, count, step):
        some = slice(start, min(start + step, count))
        mine = [Interval(v.lo[some, None], v.hi[some, None]) for v in x]
        for k, value in enumerate(_values(expression, mine, y, chosen)):
            shape = (some.stop - some.start, len(chosen))
            lo, hi = np.broadcast_to(value.lo, shape), np.broadcast_to(value.hi, shape)
            middle[k, some] = lo / 2 + hi / 2
            error = max(error, float(np.max((hi - lo) / 2 + 1.01 * 2.0**-53 * np.abs(middle[k, some]))))
    return NodeValues(middle, error * (1 + 1e-9))


def _tokens(box: Box, degrees: Sequence[int]) -> list[Interval]:
    """Coordinate by coordinate, (nodes,)."""
    places, out = types(degrees), []
    for c, N in enumerate(degrees):
        t = nodes(N + 1)
        scaled = _REAL.mul(from_fraction(box.radius[c]), Interval(t.lo[places[:, c]], t.hi[places[:, c]]))
        out.append(_REAL.add(from_fraction(box.centre[c]), scaled))
    return out


def _values(expression: Node, own: list[Interval], y: list[Interval], chosen: Integers) -> list[Interval]:
    """A body without inner reductions is evaluated on pairs of nodes, then looked up for every multiset."""
    ops, known = ListedIntervals(), dict[Reduce, list[Interval]]()
    row = [Interval(v.lo[None], v.hi[None]) for v in y]
    for part in reductions(expression):
        nested = any(isinstance(p, Reduce) for p in postorder(part.body, into_reductions=False))
        values = [] if part.kind.endswith("_others") else [body_value(part, ops, own, own, known)]
        if nested:
            values += [body_value(part, ops, own, [_pick(v, b) for v in row], known) for b in chosen.T]
        else:
            pairs = (len(own[0].lo), len(row[0].lo[0]))
            table = [v.broadcast_to(pairs) for v in body_value(part, ops, own, row, known)]
            values += [[_pick(v, b) for v in table] for b in chosen.T]
        known[part] = fold(part, ops, values)
    return components(expression, ops, leaf_at(own, None, known))


def _pick(v: Interval, which: Integers) -> Interval:
    return Interval(v.lo[:, which], v.hi[:, which])
