"""A staircase read off its weights:  b + Σ_i w_i s_i(t + b_i),  s = [· ≥ 0] (step) or min(1, R(·)) (relu, two layers).

In the second layer of the ReLU form unit i is R(1 − h), h = R(t + b_i) its workspace coordinate: 1 before, 0 behind.
All w and b are multiples of a grain g, and Σ |w| + |b| ≤ 2⁵² g: what it writes off the ramps is not rounded, in any
order of summation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.checker.compiled.ledger import Layer
from sumformer.certificates.checker.deep.dyadic import grain
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.verification import Unproved

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Staircase:
    """Unit i reads `reads[i]` (units, sources), has bias b[i], and writes w[i] (units, outputs) from `base` (outputs,).

    `before`: w counts where the unit is off (relu) rather than where it is on (step).
    """

    reads: Floats
    b: Floats
    w: Floats
    base: Floats
    before: bool
    workspace: frozenset[int]

    @property
    def mass(self) -> Floats:
        """≥ |what it writes|, on ramps too."""
        mass: Floats = np.abs(self.w).sum(0) + np.abs(self.base)
        return mass

    def levels(self, order: Ints) -> Floats:
        """What is written when the first 0, 1, …, m units of `order` are on: (m + 1, outputs), exactly."""
        on = np.concatenate([np.zeros((1, self.w.shape[1])), np.cumsum(self.w[order], axis=0)])
        out: Floats = self.base + (self.w.sum(0) - on if self.before else on)
        return out

    def shared_reads(self) -> Floats:
        """The weights (sources,) with which all units read."""
        if len(self.reads) and not bool((self.reads == self.reads[0]).all()):
            raise Unproved("a staircase's units read different sums")
        first: Floats = self.reads[0] if len(self.reads) else np.zeros(self.reads.shape[1])
        return first

    def climb(self, t: Floats, error: float) -> Floats:
        """What is written at every t, whose rounding with any b is at most `error`: off all ramps, or `Unproved`."""
        order = np.argsort(-self.b, kind="stable")
        thresholds, height = -self.b[order], 1.0 if self.before else 0.0
        place = np.searchsorted(thresholds + height / 2, t, side="right")
        padded = np.concatenate([[-np.inf], thresholds, [np.inf]])
        behind, ahead = t - padded[place], t - padded[place + 1]
        if not bool((behind >= height + error).all() and (ahead < -error).all()):
            raise Unproved("a key lies on, or within rounding of, a step")
        return self.levels(order)[place]

    def ramps_apart(self, error: float) -> None:
        """At most one unit is between off and on: what is written then lies between two neighbouring levels."""
        if not bool((np.diff(np.sort(-self.b)) > 1 + 2 * error).all()):
            raise Unproved("two ramps of a table meet")


def staircase(layers: tuple[Layer, ...], sources: list[int], outputs: list[int], named: set[int]) -> Staircase:
    """Of one layer (step) or two (relu); every weight beside those of the staircase is 0."""
    first, last = layers[0], layers[-1]
    reads = _dense(first.rows_1, first.columns_1, first.values_1, len(first.b_1), sources, "reads")
    wrote = _dense(last.columns_2, last.rows_2, last.values_2, len(last.b_1), outputs, "writes")
    base = last.b_2[outputs]
    if int(np.count_nonzero(last.b_2)) != int(np.count_nonzero(base)):
        raise Unproved("a bias writes to a coordinate that is not the staircase's")
    used, workspace = np.flatnonzero((wrote != 0).any(1)), frozenset[int]()
    if len(layers) == 2:
        unit, workspace = _workspace(first, last, used, named)
        if len(workspace) != len(set(unit.tolist())):
            raise Unproved("a workspace coordinate is written that no ramp reads")
    else:
        unit = used
    w = wrote[used]
    step = grain(np.concatenate([w.ravel(), base]))
    if not bool((np.abs(w).sum(0) + np.abs(base) <= 2.0**52 * step).all()):
        raise Unproved("a staircase's sums may be rounded")
    return Staircase(reads[unit], first.b_1[unit], w, base, len(layers) == 2, workspace)


def _workspace(first: Layer, last: Layer, used: Ints, named: set[int]) -> tuple[Ints, frozenset[int]]:
    """Unit used[j] of the second layer is R(1 − h) of a coordinate that one unit of the first writes, alone."""
    places = first.rows_2.tolist()
    fine = bool((first.values_2 == 1).all() and not first.b_2.any() and (last.values_1 == -1).all())
    once = len(set(places)) == len(places) and len(set(first.columns_2.tolist())) == len(places)
    if not fine or not once or named & set(places):
        raise Unproved("a ramp does not have a workspace coordinate of its own")
    writer = dict(zip(places, first.columns_2.tolist(), strict=True))
    read = dict(zip(last.rows_1.tolist(), last.columns_1.tolist(), strict=True))
    if len(read) != len(last.rows_1) or not all(read.get(j) in writer for j in used.tolist()):
        raise Unproved("the second layer of a ramp reads something else")
    if not bool((last.b_1[used] == 1).all()):
        raise Unproved("the second layer of a ramp is not 1 − R(1 − h)")
    return np.array([writer[read[j]] for j in used.tolist()], dtype=np.int64), frozenset(places)


def _dense(rows: Ints, columns: Ints, values: Floats, units: int, at: list[int], what: str) -> Floats:
    """(units, len(at)); all other columns must be empty."""
    place = {c: k for k, c in enumerate(at)}
    wrong = sorted({int(c) for c, v in zip(columns, values, strict=True) if v != 0 and int(c) not in place})
    if wrong:
        raise Unproved(f"a staircase {what} coordinate {wrong[0]}, which is not its own")
    out = np.zeros((units, len(at)))
    for r, c, v in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
        if v != 0:
            out[r, place[c]] = v
    return out
