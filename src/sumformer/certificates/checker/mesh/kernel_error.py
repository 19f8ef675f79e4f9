"""Step 2: e_g ≥ sup |K_g − K̂_g| over the box, K̂(x, y) = Σ_{i,j} Π_c ℓ_{i_c}(x') ℓ_{j_c}(y') S[i − j], S as stored.

remainder   w ≥ 4: Σ_{v<2k} Λ^v M_c P_w (h_c/δ_c)^w, c = c(v) the coordinates twice: interpolation in one variable errs
            by at most sup|g^(w)|/w! · h^w P_w, Cauchy bounds the derivative by M/δ^w, each operator has norm ≤ Λ
            w = 2: K̂ is a mean of values of K at differences Δ away, E|Δ_c| ≤ 16/27 h_c: 16/27 Σ_c L_c h_c
samples     Λ^{2k} max |S[e] − k((e − G + 1) h)|
places      Σ_c 2 η_c s_c, s_c = M_c/δ_c or L_c: N takes the weights of tokens x', y' of the box with |x'_c − x_c| and
            |y'_c − y_c| ≤ η_c, and |∂k/∂z_c| ≤ s_c

With w = 2, where weights are ≥ 0, a share of K is found too, from ℓ_c ≥ |∂ log|k|/∂z_c|:
|K̂/K − 1| ≤ Π_c (1 + 8/27 (e^{2ℓ_c h_c} − 1)) · e^{Σ 2η_c ℓ_c} · (1 + max |S − k|/|k|) − 1.
For r, s ≤ r the places of x and y in their intervals, Δ = h times s − r, −1 − r + s or 1 − r + s, the last with
probability r(1 − s), E Δ = 0: E|Δ| = 2h r(1 − s)(1 − r + s), and r(1 − s) ≤ ((1 + r − s)/2)² makes it ≤ 16/27 h, where
r − s = 1/3. As e^{ℓt} is convex and |Δ| ≤ 2h, E e^{ℓ|Δ|} − 1 ≤ E|Δ|/(2h) · (e^{2ℓh} − 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.features import combine, point_error
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.mesh.lagrange import lebesgue, node_polynomial
from sumformer.certificates.checker.mesh.network import MeshNetwork
from sumformer.certificates.checker.mesh.samples import compared
from sumformer.certificates.checker.mesh.slants import steepest
from sumformer.certificates.checker.mesh.strip import maximum_on_strip
from sumformer.certificates.checker.verification import Unproved

_UP = 1 + 1e-12


@dataclass(frozen=True)
class MeshConstants:
    """What the certificate records of a kernel: for each coordinate δ and M, or L and ℓ where it is known; results."""

    reaches: tuple[float, ...]
    maxima: tuple[float, ...]
    slopes: tuple[float, ...]
    log_slopes: tuple[float | None, ...]
    remainder: float
    dropped: float
    relative: float | None
    range: tuple[float, float]


@dataclass(frozen=True)
class MeshError:
    """The three parts, and two as a share of K; the proved M, or L and ℓ; a lower bound of the samples' part, and the
    range of K at differences of nodes."""

    remainder: float
    samples: float
    places: float
    remainder_share: float
    gap_share: float
    maxima: tuple[float, ...]
    log_slopes: tuple[float, ...]
    least_gap: float
    node_range: tuple[float, float]

    @property
    def gap(self) -> float:
        """What is neither the remainder nor rounding."""
        return (self.samples + self.places) * (1 + 1e-15)

    @property
    def total(self) -> float:
        return (self.remainder + self.gap) * (1 + 1e-15)

    @property
    def share(self) -> float:
        """The two together; ∞ where one is not known."""
        known = self.remainder_share + self.gap_share < math.inf
        return combine(self.remainder_share, self.gap_share) * _UP if known else math.inf


def kernel_error(net: MeshNetwork, g: int, samples: Floats, recorded: MeshConstants) -> MeshError:
    """All parts, from the recorded δ."""
    kernel, mesh, coordinates, spacings = net.kernel(g), net.meshes[g], net.sums.kernels[g].coordinates, net.spacings(g)
    logs: tuple[float, ...] = ()
    if mesh.width == 2:
        maxima, logs = _slopes(net, g, recorded)
        steep, left = [Fraction(s) for s in maxima], linear_remainder(maxima, spacings)
    else:
        if len(recorded.reaches) != len(coordinates):
            raise Unproved(f"expected a strip for each of {len(coordinates)} coordinates")
        maxima = tuple(
            maximum_on_strip(kernel, coordinates, spacings, mesh.nodes, i, reach, goal)
            for i, (reach, goal) in enumerate(zip(recorded.reaches, recorded.maxima, strict=True))
        )
        left = remainder(maxima, recorded.reaches, spacings, mesh.width)
        steep = [Fraction(m) / Fraction(r) for m, r in zip(maxima, recorded.reaches, strict=True)]
    norm = float(lebesgue(mesh.width)) ** (2 * len(coordinates)) * _UP
    found = compared(net, g, samples)
    etas = [place_error(net, c) for c in coordinates]
    moved = _moved(etas, steep)
    share = gap_share = math.inf
    if logs:
        share = _linear_share(logs, spacings)
        drift = _moved(etas, [Fraction(s) for s in logs]) if max(logs) < math.inf else math.inf
        known = drift + found.share < math.inf
        gap_share = combine(_exp_less_1(drift), found.share) * _UP if known else math.inf
    least = float(lebesgue(mesh.width)) * found.least
    return MeshError(left, norm * found.gap, moved, share, gap_share, maxima, logs, least, found.range)


def _slopes(net: MeshNetwork, g: int, recorded: MeshConstants) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """L for each coordinate, and ℓ if one is recorded for each; with the recorded ones as goals."""
    kernel, coordinates, radii = net.kernel(g), net.sums.kernels[g].coordinates, net.radii(g)
    if len(recorded.slopes) != len(coordinates):
        raise Unproved(f"expected a slant for each of {len(coordinates)} coordinates")
    slopes = tuple(steepest(kernel, coordinates, radii, i, goal) for i, goal in enumerate(recorded.slopes))
    if not all(math.isfinite(s) for s in slopes):
        raise Unproved("K is not shown to have a slope on all differences")
    goals = [goal for goal in recorded.log_slopes if goal is not None]
    if len(goals) < len(coordinates):
        return slopes, ()
    return slopes, tuple(steepest(kernel, coordinates, radii, i, goal, of_log=True) for i, goal in enumerate(goals))


def _moved(etas: Sequence[float], slopes: Sequence[Fraction]) -> float:
    """Σ_c 2 η_c s_c, rounded up; exact, as a slope may underflow while what multiplies K is large."""
    return _rounded_up(sum((2 * Fraction(eta) * s for eta, s in zip(etas, slopes, strict=True)), Fraction(0)))


def linear_remainder(slopes: Sequence[float], spacings: Sequence[Fraction]) -> float:
    """16/27 Σ_c L_c h_c, rounded up."""
    total = sum((Fraction(s) * h for s, h in zip(slopes, spacings, strict=True)), Fraction(0)) * Fraction(16, 27)
    return _rounded_up(total)


def _linear_share(log_slopes: Sequence[float], spacings: Sequence[Fraction]) -> float:
    """Π_c (1 + 8/27 (e^{2ℓ_c h_c} − 1)) − 1, rounded up."""
    parts = [8 / 27 * _exp_less_1(2 * s * float(h) * _UP) for s, h in zip(log_slopes, spacings, strict=True)]
    return combine(*parts) * _UP if max(parts) < math.inf else math.inf


def _exp_less_1(t: float) -> float:
    return math.expm1(t) * _UP if t < 100 else math.inf


def _rounded_up(value: Fraction) -> float:
    try:
        return math.nextafter(float(value), math.inf)
    except OverflowError:
        return math.inf


def remainder(maxima: Sequence[float], reaches: Sequence[float], spacings: Sequence[Fraction], width: int) -> float:
    """Σ_{v<2k} Λ^v M_c P_w (h_c/δ_c)^w, rounded up; exact, as powers may underflow while M is large."""
    if not all(math.isfinite(m) and 0 < r < math.inf for m, r in zip(maxima, reaches, strict=True)):
        return math.inf
    each = [Fraction(m) * (h / Fraction(r)) ** width for m, r, h in zip(maxima, reaches, spacings, strict=True)]
    total = sum((lebesgue(width) ** v * part for v, part in enumerate(each * 2)), Fraction(0)) * node_polynomial(width)
    return _rounded_up(total)


def place_error(net: MeshNetwork, c: int) -> float:
    """η_c ≥ |x'_c − x_c|, x' = centre − radius + h ŝ the token whose weights N takes.

    ŝ = fl(fl(t̂ + 1)·m/2) = (t̂ + 1)(m/2)(1 + δ₁)(1 + δ₂) ∈ [0, m], as rounding keeps order, and t̂ + 1 is 0 or no
    smaller than 2^−54. So |ŝ − s| ≤ m/2·(|t̂ − t| + 2(2u + u²)), and h = 2·radius/m. The place r̂ = ŝ − i in its interval
    is exact: i ≤ ŝ ≤ i + 1 ≤ 2i, or i = 0.
    """
    a = Arithmetic.named(net.sums.arithmetic)
    shift = point_error(a, net.sums.centre[c], net.sums.radius[c]) + 4 * a.u * (1 + a.u)
    return float(net.sums.radius[c]) * shift * _UP
