"""t² on [0, 1] by L layers of M units:  t² = I(t) − (w − w²)/M²,  I the chords of t² over M equal pieces, w the M-saw.

Applied L times to w², the last (w − w²) ∈ [0, 1/4] left out:  0 ≤ result − t² ≤ M^{−2L}/4.
M = 2 is Yarotsky's network (deep, few units); L = 1 is interpolation (shallow).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from typing import Literal

import numpy as np

from sumformer.algebra.rounding import FloatArray
from sumformer.gadgets.piecewise_linear import PiecewiseLinear

Prefer = Literal["depth", "width", "parameters"]
PREFERENCES: tuple[Prefer, ...] = ("depth", "width", "parameters")
DEPTH_PRICE = 0.08  # what a layer more must save of the weights, to be taken
WIDEST = 2048  # units of one branch in one layer, before a second layer is taken


@dataclass(frozen=True)
class Shape:
    """M pieces, L layers; L = 0 leaves the square out altogether."""

    pieces: int
    layers: int

    @property
    def error(self) -> float:
        """max of M^{−2L}/4, relative to the square of the range's length; 1/4 for L = 0."""
        return 0.25 * float(self.pieces) ** (-2 * self.layers) * (1 + 2.0**-40)

    def nonzero(self, reads: int) -> int:
        """Weights of one branch whose first layer reads `reads` numbers."""
        m, layers = self.pieces, self.layers
        if layers < 2:
            return m * layers * (reads + 2)
        return m * (reads + 3) + (layers - 2) * 4 * m + 3 * m + 3


def saw(pieces: int) -> PiecewiseLinear:
    """w: 0 → 1 → 0 → …, M pieces on [0, 1]."""
    bends = np.full(pieces, 2.0 * pieces) * np.where(np.arange(pieces) % 2, -1.0, 1.0)
    bends[0] = pieces
    return PiecewiseLinear(_knots(pieces), bends, 0.0)


def chords(pieces: int) -> PiecewiseLinear:
    """I: the chords of t² over M pieces of [0, 1]."""
    bends = np.full(pieces, 2.0 / pieces)
    bends[0] = 1.0 / pieces
    return PiecewiseLinear(_knots(pieces), bends, 0.0)


def choose(tolerance: float, prefer: Prefer, reads: int = 2) -> Shape:
    """The shape with error ≤ tolerance (relative to the square of the length of the range) that `prefer` asks for."""
    if tolerance >= 0.25 * (1 + 2.0**-40):
        return Shape(2, 0)
    needed = 0.25 * (1 + 2.0**-40) / tolerance  # M^{2L} ≥ needed
    if prefer == "depth":
        shallow = Shape(ceil(needed**0.5), 1)
        if shallow.pieces <= WIDEST:
            return shallow
        layers = ceil(log(needed) / (2 * log(WIDEST)))
        return _power_of_two(needed, layers)
    if prefer == "width":
        return Shape(2, max(1, ceil(log(needed) / (2 * log(2)) - 1e-12)))
    options = [Shape(ceil(needed**0.5), 1)] if needed < 1e4 else []
    options += [_power_of_two(needed, layers) for layers in range(2, 40) if needed > 4.0 ** (layers - 1)]
    return min(options, key=lambda s: s.nonzero(reads) * (1 + DEPTH_PRICE * s.layers))


def _power_of_two(needed: float, layers: int) -> Shape:
    """The least M = 2^j with M^{2L} ≥ needed: its knots are exact."""
    j = max(1, ceil(log(needed) / (2 * layers * log(2)) - 1e-12))
    return Shape(2**j, layers)


def _knots(pieces: int) -> FloatArray:
    return np.arange(pieces) / pieces
