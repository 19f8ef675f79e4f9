"""Sizes and errors of the parts of a term a_t(x) · mean b p_t K over the cells: own factor, channel, mean."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from sumformer.algebra.tracked import INFLATE, Tracked, TrackedOperations
from sumformer.targets import Node
from sumformer.targets.evaluate import Environment, evaluate
from sumformer.theorems.alberti_2023.cells import Cells
from sumformer.theorems.alberti_2023.decomposition import Term
from sumformer.theorems.alberti_2023.kernel_errors import KernelErrors
from sumformer.theorems.alberti_2023.mesh_roundings import MeshRoundings
from sumformer.theorems.alberti_2023.roundings import Roundings
from sumformer.theorems.alberti_2023.sketch import NoRoundings


@dataclass(frozen=True)
class TermSizes:
    """`reductions` holds the inner reductions' values as they become known."""

    cells: Cells
    ops: TrackedOperations
    kernels: KernelErrors
    roundings: Roundings | MeshRoundings | NoRoundings
    reductions: dict[Node, Tracked]

    @property
    def environment(self) -> Environment[Tracked]:
        x = Tracked(self.cells.x, np.zeros(self.cells.x.shape))
        return Environment(x=x, reduce=self.reductions.__getitem__)

    def own(self, node: Node) -> Tracked:
        """A value of the own token over the x-cells, (cells, 1)."""
        value = evaluate(node, self.ops, self.environment)
        shape = (self.cells.x.shape[0], 1)
        return Tracked(value.range.broadcast_to(shape), np.broadcast_to(value.error, shape))

    def channel(self, factor: Node) -> Tracked:
        """b over the y-cells, (cells, 1)."""
        y = Tracked(self.cells.y, np.zeros(self.cells.y.shape))
        value = evaluate(factor, self.ops, Environment(y=y))
        shape = (self.cells.y.shape[0], 1)
        return Tracked(value.range.broadcast_to(shape), np.broadcast_to(value.error, shape))

    def of(self, term: Term, channel_error: float, least: float, largest: float) -> tuple[float, float]:
        """sup |V_t| and the rounding of V_t, both relative to a mean of |b|; `least` ≤ that mean, |b| ≤ `largest`."""
        if not all(self._storable(abs(c) / 2 ** sum(g > 0 for g in gamma)) for gamma, c in term.polynomial):
            return float("inf"), float("inf")  # a weight of p ⊛ Σ would be rounded to 0, or without relative accuracy
        mass = sum(float(abs(c)) for _, c in term.polynomial) * INFLATE
        value = mass * (self.kernels.maximum(term) + self.kernels.absolute(term))
        spread = self.kernels.mass(term)
        highest, lowest = (prod(end(m, 1.0) for m in self.kernels.masses(term)) for end in (max, min))
        highest *= self.roundings.growth(term)
        if not largest * self.roundings.n_max * max(mass, 1.0) * highest * 2 <= self.ops.huge:
            return float("inf"), float("inf")  # a sum over tokens may overflow, or what some of the kernels make of it
        scale = least * lowest * min(mass, 1.0)  # of the smallest numbers on the way, between two kernels too
        rounded = mass * spread * self.roundings.relative(term, channel_error, scale)
        return value * INFLATE, rounded * INFLATE

    def _storable(self, weight: Fraction) -> bool:
        """A normal number of the arithmetic, so that storing it errs by a relative 2u at most."""
        return 4 * self.ops.tiny <= weight <= self.ops.huge
