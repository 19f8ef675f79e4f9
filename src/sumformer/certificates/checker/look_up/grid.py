"""The first staircase: cells along each coordinate, the ramps between them, and q of every cell, all exactly.

A unit reads one x_c with a weight a that is a power of two (1 for steps), so a·x is exact, and a rounded sum a·x + b is
≥ 0, ≥ 1 or ≤ 0 where the exact one is: the unit is off for x ≤ −b/a (step: <) and on from (1 − b)/a (step: −b/a).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.look_up.staircase import Staircase
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.domain import Box


@dataclass(frozen=True, eq=False)
class Cells:
    """`ends[c]`: lower end, edges, upper end; `ramps[c]`: their widths; `q` of every cell, the last c fastest."""

    ends: tuple[tuple[Fraction, ...], ...]
    ramps: tuple[tuple[Fraction, ...], ...]
    q: Floats

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(len(e) - 1 for e in self.ends)

    def radii(self) -> list[Fraction]:
        """r_c: no point of a cell is further from its centre, the middle."""
        return [max((b - a) / 2 for a, b in pairwise(e)) for e in self.ends]

    def centres(self) -> list[list[Fraction]]:
        return [[(a + b) / 2 for a, b in pairwise(e)] for e in self.ends]

    def ramp_share(self, n: int) -> Fraction:
        """≥ the share of inputs with one of n tokens on a ramp."""
        shares = (sum(ramps, Fraction(0)) / (e[-1] - e[0]) for ramps, e in zip(self.ramps, self.ends, strict=True))
        return min(Fraction(1), n * sum(shares, Fraction(0)))


def read_cells(stair: Staircase, box: Box) -> Cells:
    if any(abs(v) > 2**200 for v in (*box.lower, *box.upper)):
        raise Unproved("the box is too large for a·x to be exact")
    ends, ramps, q = [], [], np.zeros(1)
    if not bool(((stair.reads != 0).sum(1) == 1).all()):
        raise Unproved("a step of the grid reads more than one coordinate")
    for c in range(box.d):
        mine = np.flatnonzero(stair.reads[:, c])
        edges = sorted((*_edge(float(stair.reads[i, c]), float(stair.b[i]), stair.before), i) for i in mine.tolist())
        limits = [box.lower[c], *(v for low, high, _ in edges for v in (low, high)), box.upper[c]]
        if any(b < a for a, b in pairwise(limits)):
            raise Unproved("edges of cells leave the box, or ramps meet")
        middles = [(low + high) / 2 for low, high, _ in edges]
        ends.append((box.lower[c], *middles, box.upper[c]))
        ramps.append(tuple(high - low for low, high, _ in edges))
        order = np.array([i for *_, i in edges], dtype=np.int64)
        on = np.concatenate([[0.0], np.cumsum(stair.w[order, 0])])
        q = (q[:, None] + (stair.w[order, 0].sum() - on if stair.before else on)).ravel()
    return Cells(tuple(ends), tuple(ramps), q + stair.base[0])


def _edge(a: float, b: float, ramp: bool) -> tuple[Fraction, Fraction]:
    if not 0 < a <= 2.0**200 or float(np.frexp(a)[0]) != 0.5 or (a != 1 and not ramp):
        raise Unproved("a step of the grid reads its coordinate with a weight that is no power of two")
    low = -Fraction(b) / Fraction(a)
    return low, low + Fraction(1) / Fraction(a) if ramp else low
