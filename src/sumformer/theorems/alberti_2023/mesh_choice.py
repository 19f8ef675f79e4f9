"""A mesh for one kernel: its intervals, what bounds the error of interpolating on it, and what it costs.

Smooth kernels, w ≥ 4: E_c = M_c(δ_c) P_w (h_c/δ_c)^w in every variable, in all Σ_v Λ^v E_{c(v)}, v < 2k.
Kernels with corners, w = 2: K̂ is the mean of K at z + Δ, E Δ_c = 0, |Δ_c| ≤ 2h_c. With r and s ≤ r the places of x_c
and y_c in their intervals E|Δ_c| = 2 r(1 − s)(1 − r + s) h_c ≤ 16/27 h_c, largest at r = 2/3, s = 1/3. With slopes L_c
  |K̂ − K| ≤ 16/27 Σ_c L_c h_c,   and where |∂ log K/∂z_c| ≤ ℓ_c   |K̂/K − 1| ≤ Π_c (1 + 8/27 (e^{2 ℓ_c h_c} − 1)) − 1,
as e^{ℓt} ≤ 1 + t/(2h) (e^{2ℓh} − 1) for 0 ≤ t ≤ 2h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, expm1, inf, log1p, prod

from sumformer.algebra.equidistant import lebesgue, node_polynomial
from sumformer.algebra.tracked import INFLATE
from sumformer.nn.frequencies import cut
from sumformer.nn.mesh_blocks import LAST, SIDE
from sumformer.nn.mesh_transfer import MANY

MOST_INTERVALS = 2**40  # more than any budget
TOKENS = 100_000  # that a width is chosen for


@dataclass(frozen=True)
class Strip:
    """δ and M_c(δ) of one coordinate; δ in units of its radius."""

    reach: float
    maximum: float

    @property
    def slope(self) -> float:
        """M/δ."""
        return self.maximum / self.reach

    def remainder(self, width: int, intervals: int) -> float:
        """E_c, h/δ = 2/(m·reach)."""
        return self.maximum * float(node_polynomial(width)) * (2 / (intervals * self.reach)) ** width * INFLATE

    def needs(self, width: int) -> float:
        """What the number of intervals grows with."""
        return float(self.maximum ** (1 / width)) / self.reach

    def intervals(self, width: int, allowed: float) -> int:
        """The fewest for which E_c ≤ allowed."""
        ratio = self.maximum * float(node_polynomial(width)) / allowed
        return ceil(min(2 / self.reach * float(ratio ** (1 / width)) * INFLATE, MOST_INTERVALS))


@dataclass(frozen=True)
class Slant:
    """L_c and ℓ_c of one coordinate, per radius: how steep K and log K are; ∞ where that is not known."""

    slope: float
    log_slope: float


@dataclass(frozen=True)
class Choice:
    """A mesh that is fine enough, and why: by strips, or with w = 2 by slants."""

    width: int
    intervals: tuple[int, ...]
    strips: tuple[Strip, ...] = ()
    slants: tuple[Slant, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Nodes along each coordinate."""
        return tuple(m + self.width - 1 for m in self.intervals)

    @property
    def slopes(self) -> tuple[float, ...]:
        """Of K in each coordinate, per radius."""
        return tuple(bound.slope for bound in self.strips or self.slants)

    @property
    def remainder(self) -> float:
        """sup |K̂ − K|."""
        if self.slants:
            return sum(32 / 27 * s.slope / m for s, m in zip(self.slants, self.intervals, strict=True)) * INFLATE
        each = [s.remainder(self.width, m) for s, m in zip(self.strips, self.intervals, strict=True)] * 2
        return sum(lebesgue(self.width) ** v * part for v, part in enumerate(each)) * INFLATE

    @property
    def relative(self) -> float:
        """sup |K̂/K − 1|, ∞ where it is not known."""
        if not self.slants or max(s.log_slope for s in self.slants) == inf:
            return inf
        parts = [log1p(8 / 27 * expm1(4 * s.log_slope / m)) for s, m in zip(self.slants, self.intervals, strict=True)]
        return expm1(sum(parts) * INFLATE) * INFLATE


def cost(chosen: Choice, axes: int) -> float:
    """Of masses and values of TOKENS tokens, of the sums over nodes, and of the nodes, in units of 64 multiply-adds.

    `axes`: of the largest product that K is in.
    """
    shape = chosen.shape
    nodes, kernels = prod(shape), axes / len(shape)
    masses = float(nodes**kernels)
    sums = kernels * masses / nodes * min(by_pairs(shape), by_frequencies(shape))
    return TOKENS * _of_a_token(chosen, axes) + sums + 64 * masses


def _of_a_token(chosen: Choice, axes: int) -> float:
    """Stencil place by stencil place, or by blocks (`nn/mesh_blocks.py`)."""
    if chosen.width ** (axes - 1) < MANY:
        return 20.0 * float(chosen.width**axes)
    last = min(LAST, chosen.intervals[-1]) + chosen.width - 1
    return 0.7 * float((SIDE + chosen.width - 1) ** (axes - 1)) * last


def by_pairs(shape: Sequence[int]) -> float:
    """What the sums over all pairs of nodes cost."""
    return prod(shape) ** 2 / 64


def by_frequencies(shape: Sequence[int]) -> float:
    """What two spectra and the way back from their product cost."""
    lengths = [2 * b - 1 for nodes in shape for b in cut(nodes)]
    return prod(lengths) * (3 * sum(lengths) / 64 + 20)
