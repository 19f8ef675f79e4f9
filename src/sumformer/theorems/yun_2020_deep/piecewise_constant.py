"""Y Lemma 8: f̄, constant on the cubes of side δ, and certified bounds of (∫ ‖f − f̄‖_p^p)^{1/p} part by part.

f̄ is f at the cube's centre, one value for every multiset of cells. The integral of |f − f̄|^p over a cube is bounded by
interval enclosures of f on sᵈⁿ equal parts of it: a certified modulus of continuity, cell by cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sumformer.algebra.interval import Interval, concatenate, require_defined
from sumformer.algebra.interval_operations import IntervalOperations
from sumformer.algebra.rounding import fraction_bounds, up
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.token_values import token_value
from sumformer.theorems.integral_norm import SUMMED, powers
from sumformer.theorems.yun_2020_deep.multisets import Ints, Multisets, Tuples, longest_run

Floats = NDArray[np.float64]
CHUNK = 20_000


@dataclass(frozen=True)
class PiecewiseConstant:
    """f̄ on the q^d cells of each coordinate box: `values` (multisets, n, width), at the centres."""

    target: Target
    n: int
    q: int
    table: Multisets
    values: Floats

    def at(self, cells: Ints) -> Floats:
        """f̄ for cells (m, n) in any order, (m, n, width)."""
        row, place = self.table.find(cells)
        return np.asarray(np.take_along_axis(self.values[row], place[:, :, None], 1))


@dataclass(frozen=True)
class Integrals:
    """p-th powers, per unit of volume: of f − f̄ where cells differ, of f where two agree, of f; rest: three agree."""

    apart: float
    pairs: float
    whole: float
    together: float
    low: Floats
    high: Floats


def piecewise_constant(f: Target, n: int, q: int) -> PiecewiseConstant:
    table = table_of(f, n, q)
    values = np.concatenate([_on(f, _centres(f, part, q)).mid() for part in _chunks(table.rows)])
    return PiecewiseConstant(f, n, q, table, values)


def integrals(bar: PiecewiseConstant, p: float, s: int, equal_cells: bool) -> Integrals:
    """Over the multisets of cells cut into s parts per coordinate; `equal_cells`: f̄ has values there too."""
    f, n, fine, d = bar.target, bar.n, bar.q * s, bar.target.input_box.d
    sums = np.zeros(4)
    low, high = np.full(f.width, np.inf), np.full(f.width, -np.inf)
    table = table_of(f, n, fine)
    for rows in _chunks(table.rows):
        value = _on(f, _boxes(f, rows, fine))
        cells = _coarse(rows, fine, s, d, bar.q)
        share = table.orders(rows) / float(fine) ** (d * n)
        centre = bar.at(cells)
        apart = up(np.maximum(up(value.hi - centre), up(centre - value.lo)))
        run = longest_run(cells)
        apart_here = np.ones(len(rows), dtype=bool) if equal_cells else run == 1
        own, zero = (powers(np.abs(v), p).sum((1, 2)) * share for v in (apart, value.abs_upper()))
        sums += [
            own[apart_here].sum(),
            zero[~apart_here & (run == 2)].sum(),
            zero.sum(),
            share[_three(run, apart_here)].sum(),
        ]
        low, high = np.minimum(low, value.lo.min((0, 1))), np.maximum(high, value.hi.max((0, 1)))
    apart_, pairs, whole, together = (float(v) * SUMMED for v in sums)
    return Integrals(apart_, pairs, whole, together, low, high)


def volume(f: Target, n: int) -> float:
    """vol(box)ⁿ, rounded up."""
    return fraction_bounds(f.input_box.volume**n)[1]


def table_of(f: Target, n: int, per_axis: int) -> Multisets:
    """Multisets of the cells of one token; in order where f knows the places of the tokens."""
    count = per_axis**f.input_box.d
    return Tuples(n, count) if f.positioned else Multisets(n, count)


def parts_per_cell(f: Target, n: int, q: int, budget: int, most: int = 8) -> int:
    """The largest s ≤ `most` for which the multisets of parts are within the budget."""
    s = 1
    while s < most and table_of(f, n, q * (s + 1)).size <= budget:
        s += 1
    return s


def _three(run: Ints, apart: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return (run > 2) & ~apart


def _chunks(rows: Ints) -> list[Ints]:
    return [rows[i : i + CHUNK] for i in range(0, len(rows), CHUNK)]


def _digits(cells: Ints, base: int, d: int) -> Ints:
    return np.stack([(cells // base**i) % base for i in range(d)], -1)


def _coarse(rows: Ints, fine: int, s: int, d: int, q: int) -> Ints:
    """Cells of side δ/s → the cells of side δ that contain them."""
    return np.asarray((_digits(rows, fine, d) // s) @ (q ** np.arange(d)))


def _boxes(f: Target, rows: Ints, q: int) -> Interval:
    """(m, n, d): the cubes of the box."""
    ends = _ends(f, [Fraction(k, q) for k in range(q + 1)])
    digits = _digits(rows, q, f.input_box.d)
    axis = np.arange(f.input_box.d)
    return Interval(ends.lo[axis, digits], ends.hi[axis, digits + 1])


def _centres(f: Target, rows: Ints, q: int) -> Interval:
    ends = _ends(f, [Fraction(2 * k + 1, 2 * q) for k in range(q)])
    digits = _digits(rows, q, f.input_box.d)
    axis = np.arange(f.input_box.d)
    return Interval(ends.lo[axis, digits], ends.hi[axis, digits])


def _ends(f: Target, shares: list[Fraction]) -> Interval:
    """(d, len): lower + share · (upper − lower)."""
    pairs = [
        [fraction_bounds(low + share * (high - low)) for share in shares]
        for low, high in zip(f.input_box.lower, f.input_box.upper, strict=True)
    ]
    both = np.array(pairs)
    return Interval(both[..., 0], both[..., 1])


def _on(f: Target, tokens: Interval) -> Interval:
    """f on boxes (m, n, d) → (m, n, width); token j is at place j + 1."""
    m, n, ops = len(tokens.lo), tokens.shape[1], IntervalOperations()
    if f.positioned:
        tokens = concatenate([tokens, Interval.point(np.arange(1.0, n + 1))[:, None]])
    lo, hi = np.empty((m, n, f.width)), np.empty((m, n, f.width))
    turned = Interval(np.moveaxis(tokens.lo, 1, 0), np.moveaxis(tokens.hi, 1, 0))
    for i in range(n):
        others = turned[[j for j in range(n) if j != i]]
        value = require_defined(token_value(f.expression, ops, turned[i], others, n - 1), f.source)
        wide = value.broadcast_to((m, f.width))
        lo[:, i], hi[:, i] = wide.lo, wide.hi
    return Interval(lo, hi)
