"""The table: for every own cell and multiset of the others' cells, f at the cells' centres, in multiples of 2^−s.

Entries are sorted by their key A·q + Σ φ. With s such that the steps from entry to entry, and their sums in any order,
are below 2⁵² grains, a staircase of these steps is evaluated without rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np

from sumformer.algebra.interval import Interval, require_defined
from sumformer.algebra.interval_operations import IntervalOperations
from sumformer.algebra.multisets import IntArray, Multisets
from sumformer.algebra.rounding import FloatArray, fraction_bounds, up
from sumformer.errors import RefusedError
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.look_up.code import keys, look_up_code
from sumformer.theorems.alberti_2023.token_values import token_value

CHUNK = 4096
LARGEST = 1e200


@dataclass(frozen=True, eq=False)
class Table:
    """`keys` ascending (entries,), `values` (entries, width); |values − f(centres)| ≤ `error`; `variation` Σ|steps|."""

    code: list[int]
    stride: int
    keys: IntArray
    values: FloatArray
    error: float
    variation: float


def entries(cells: int, n: int) -> int:
    """K · C(K + n − 2, n − 1)."""
    return cells * comb(cells + n - 2, n - 1)


def make_table(f: Target, per_axis: int) -> Table:
    """f on per_axis^d equal cells; the first coordinate of a cell's number is the slowest."""
    n, cells = f.tokens.maximum, per_axis**f.d
    others = Multisets(cells, n - 1).members[n - 1]
    own = np.repeat(np.arange(cells), len(others))
    rest = np.tile(others, (cells, 1))
    code = look_up_code(cells, n)
    stride, phi = keys(code, n), np.array(code, dtype=np.int64)
    key = stride * own + phi[own] + phi[rest].sum(1)
    order = np.argsort(key, kind="stable")
    own, rest, key = own[order], rest[order], key[order]
    centre = _centres(f, per_axis)
    found = [_values(f, centre, own[i : i + CHUNK], rest[i : i + CHUNK]) for i in range(0, len(key), CHUNK)]
    lo, hi = (np.concatenate([getattr(v, end) for v in found]) for end in ("lo", "hi"))
    if not max(float(np.abs(lo).max()), float(np.abs(hi).max())) < LARGEST:
        raise RefusedError("the target's values leave the range of a table in float64", [f"|f| < {LARGEST:g}"])
    values, variation = _grains(np.clip(0.5 * lo + 0.5 * hi, lo, hi))
    error = float(up(np.maximum(up(hi - values), up(values - lo)).max()))
    return Table(code, stride, key, values, error, variation)


def _centres(f: Target, per_axis: int) -> Interval:
    """(cells, d)."""
    sides = [
        [fraction_bounds(low + (high - low) * Fraction(2 * k + 1, 2 * per_axis)) for k in range(per_axis)]
        for low, high in zip(f.box.lower, f.box.upper, strict=True)
    ]
    grid = np.array(list(product(*sides)))  # (cells, d, 2)
    return Interval(grid[..., 0], grid[..., 1])


def _values(f: Target, centre: Interval, own: IntArray, rest: IntArray) -> Interval:
    value = token_value(f.expression, IntervalOperations(), centre[own], centre[rest.T], rest.shape[1])
    return require_defined(value, f.source).broadcast_to((len(own), f.width))


def _grains(values: FloatArray) -> tuple[FloatArray, float]:
    """Rounded to multiples of 2^−s, and the sum of the steps' sizes, in the output where it is largest."""
    mass = float((np.abs(np.diff(values, axis=0)).sum(0) + 2 * np.abs(values).max(0)).max())
    s = 51 - int(np.frexp(max(mass, 2.0**-500))[1])
    rounded = np.ldexp(np.rint(np.ldexp(values, s)), -s)
    return rounded, float((np.abs(np.diff(rounded, axis=0)).sum(0) + 2 * np.abs(rounded).max(0)).max())
