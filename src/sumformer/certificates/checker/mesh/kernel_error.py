"""Step 2: e_g ≥ sup |K_g − K̂_g| over the box, K̂(x, y) = Σ_{i,j} Π_c ℓ_{i_c}(x') ℓ_{j_c}(y') S[i − j], S as stored.

remainder   Σ_{v<2k} Λ^v M_c P_w (h_c/δ_c)^w, c = c(v) the coordinates twice: interpolation in one variable errs by at
            most sup|g^(w)|/w! · h^w P_w, Cauchy bounds the derivative by M/δ^w, and each operator has norm ≤ Λ
samples     Λ^{2k} max |S[e] − k((e − G + 1) h)|
places      Σ_c 2 η_c M_c/δ_c: N takes the weights of tokens x', y' of the box with |x'_c − x_c| and |y'_c − y_c| ≤ η_c,
            and |∂k/∂z_c| ≤ M_c/δ_c
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.features import point_error
from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, from_fraction
from sumformer.certificates.checker.mesh.lagrange import lebesgue, node_polynomial
from sumformer.certificates.checker.mesh.network import Mesh, MeshNetwork
from sumformer.certificates.checker.mesh.strip import maximum_on_strip
from sumformer.certificates.checker.verification import Unproved

_UP = 1 + 1e-12


@dataclass(frozen=True)
class MeshConstants:
    """What the certificate records of a kernel: δ and M for each coordinate, and results."""

    reaches: tuple[float, ...]
    maxima: tuple[float, ...]
    remainder: float
    dropped: float
    range: tuple[float, float]


@dataclass(frozen=True)
class MeshError:
    """The three parts; the proved M, a lower bound of the samples' part, and the range of K at differences of nodes."""

    remainder: float
    samples: float
    places: float
    maxima: tuple[float, ...]
    least_gap: float
    node_range: tuple[float, float]

    @property
    def gap(self) -> float:
        """What is neither the remainder nor rounding."""
        return (self.samples + self.places) * (1 + 1e-15)

    @property
    def total(self) -> float:
        return (self.remainder + self.gap) * (1 + 1e-15)


def kernel_error(net: MeshNetwork, g: int, samples: Floats, recorded: MeshConstants) -> MeshError:
    """All parts, from the recorded δ."""
    kernel, mesh, coordinates, spacings = net.kernel(g), net.meshes[g], net.sums.kernels[g].coordinates, net.spacings(g)
    if len(recorded.reaches) != len(coordinates):
        raise Unproved(f"expected a strip for each of {len(coordinates)} coordinates")
    maxima = tuple(
        maximum_on_strip(kernel, coordinates, spacings, mesh.nodes, i, reach, goal)
        for i, (reach, goal) in enumerate(zip(recorded.reaches, recorded.maxima, strict=True))
    )
    exact = _exact_samples(net, g)
    norm = float(lebesgue(mesh.width)) ** (2 * len(coordinates)) * _UP
    gap, least = _gap(samples, exact)
    steps = [2 * place_error(net, c) * m / r for c, m, r in zip(coordinates, maxima, recorded.reaches, strict=True)]
    left = remainder(maxima, recorded.reaches, spacings, mesh.width)
    inside = _in_the_box(mesh)
    ends = float(exact.lo[inside].min()), float(exact.hi[inside].max())
    return MeshError(left, norm * gap, math.fsum(steps) * _UP, maxima, float(lebesgue(mesh.width)) * least, ends)


def remainder(maxima: Sequence[float], reaches: Sequence[float], spacings: Sequence[Fraction], width: int) -> float:
    """Σ_{v<2k} Λ^v M_c P_w (h_c/δ_c)^w, rounded up; exact, as powers may underflow while M is large."""
    if not all(math.isfinite(m) and 0 < r < math.inf for m, r in zip(maxima, reaches, strict=True)):
        return math.inf
    each = [Fraction(m) * (h / Fraction(r)) ** width for m, r, h in zip(maxima, reaches, spacings, strict=True)]
    total = sum((lebesgue(width) ** v * part for v, part in enumerate(each * 2)), Fraction(0)) * node_polynomial(width)
    try:
        return math.nextafter(float(total), math.inf)
    except OverflowError:
        return math.inf


def place_error(net: MeshNetwork, c: int) -> float:
    """η_c ≥ |x'_c − x_c|, x' = centre − radius + h ŝ the token whose weights N takes.

    ŝ = fl(fl(t̂ + 1)·m/2) = (t̂ + 1)(m/2)(1 + δ₁)(1 + δ₂) ∈ [0, m], as rounding keeps order, and t̂ + 1 is 0 or no
    smaller than 2^−54. So |ŝ − s| ≤ m/2·(|t̂ − t| + 2(2u + u²)), and h = 2·radius/m. The place r̂ = ŝ − i in its interval
    is exact: i ≤ ŝ ≤ i + 1 ≤ 2i, or i = 0.
    """
    a = Arithmetic.named(net.sums.arithmetic)
    shift = point_error(a, net.sums.centre[c], net.sums.radius[c]) + 4 * a.u * (1 + a.u)
    return float(net.sums.radius[c]) * shift * _UP


def _exact_samples(net: MeshNetwork, g: int) -> Interval:
    """k at all differences of nodes, every sub-expression on the axes it mentions."""
    coordinates, shape = net.sums.kernels[g].coordinates, net.meshes[g].differences
    ops, z = IntervalOperations(), {}
    for axis, (c, h, G) in enumerate(zip(coordinates, net.spacings(g), net.meshes[g].nodes, strict=True)):
        e = np.arange(1.0 - G, G).reshape(tuple(-1 if a == axis else 1 for a in range(len(shape))))
        z[c] = ops.mul(from_fraction(h), Interval(e, e))
    return net.kernel(g).value(ops, z).broadcast_to(shape)


def _gap(samples: Floats, exact: Interval) -> tuple[float, float]:
    """Bounds of max |S − k| from above and below."""
    off = np.maximum(samples - exact.lo, exact.hi - samples)
    if not bool(np.isfinite(off).all()):
        raise Unproved("K − S is not finite at the differences of nodes")
    least = np.maximum(np.maximum(exact.lo - samples, samples - exact.hi), 0.0)
    return float(off.max()) * _UP, float(least.max()) * (1 - 1e-12)


def _in_the_box(mesh: Mesh) -> tuple[slice, ...]:
    """Differences of two points of the box: |e|h ≤ 2·radius = m h."""
    return tuple(slice(G - 1 - m, G + m) for G, m in zip(mesh.nodes, mesh.intervals, strict=True))
