"""FC(z) = Σ over units of bend · R(⟨reads, z⟩ + offset − knot): a feed-forward layer by its action on named places.

Units that read the same number t = ⟨reads, z⟩ + offset write a piecewise-linear function of t to each place they write.
A gadget is a few stages of them, one stage per feed-forward layer, with a proved error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sumformer.algebra.rounding import FloatArray, shown_up
from sumformer.gadgets.piecewise_linear import PiecewiseLinear
from sumformer.gadgets.reading import Reading


@dataclass(frozen=True, eq=False)
class Units:
    """Hidden units that share `reads` and `offset`; `writes` and `constants` by place."""

    reads: Mapping[str, float]
    offset: float
    knots: FloatArray
    writes: Mapping[str, FloatArray]
    constants: Mapping[str, float]

    @property
    def count(self) -> int:
        return int(self.knots.size)

    def plus(self, place: str, constant: float) -> Units:
        """The same units, with a constant more at `place`."""
        return replace(self, constants={**self.constants, place: self.constants.get(place, 0.0) + constant})

    @property
    def nonzero(self) -> int:
        bias = int(np.count_nonzero(self.offset - self.knots))
        return self.count * len(self.reads) + bias + sum(int(np.count_nonzero(w)) for w in self.writes.values())


class Size(NamedTuple):
    """What a realisation costs: layers, hidden units of its widest layer, non-zero weights."""

    layers: int
    width: int
    nonzero: int


@dataclass(frozen=True, eq=False)
class Gadget:
    """`stages[k]` acts in the k-th layer; |out − intended| ≤ `error` while every argument stays in its range.

    In exact arithmetic: what float64 adds is counted for whole networks (`theorems/alberti_2023/compile/rounding.py`).
    Only the deep realisations (`deep.py`) have their own roundings in `error`, as they choose their depth by them.
    """

    kind: str
    stages: tuple[tuple[Units, ...], ...]
    error: float
    workspace: tuple[str, ...] = ()
    errors: tuple[float, ...] = ()
    """Of each of several outputs."""

    def __repr__(self) -> str:
        return f"Gadget({self.kind}: {self.depth} layers, width {self.width}, error ≤ {shown_up(self.error)})"

    @property
    def depth(self) -> int:
        return len(self.stages)

    @property
    def width(self) -> int:
        """Hidden units of the widest layer."""
        return max((sum(units.count for units in stage) for stage in self.stages), default=0)

    @property
    def size(self) -> Size:
        """As the layers' matrices and biases have it: a place has one bias in a layer."""
        biases = sum(len({name for units in stage for name in units.constants}) for stage in self.stages)
        return Size(self.depth, self.width, self.nonzero + biases)

    @property
    def nonzero(self) -> int:
        return sum(units.nonzero for stage in self.stages for units in stage)


def units_of(t: Reading, functions: Mapping[str, PiecewiseLinear]) -> Units:
    """One group of units that writes P_place(t) to every place; all P have the same knots."""
    (first, *_) = functions.values()
    return Units(
        dict(t.weights),
        t.offset,
        first.knots,
        {place: p.bends for place, p in functions.items()},
        {place: p.start for place, p in functions.items() if p.start},
    )
