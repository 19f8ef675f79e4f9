"""The network N as its configuration describes it: the sums that every such network has, and a mesh for each kernel.

Coordinate c of a kernel is cut into m intervals of length h = 2·radius/m; with the stencil's width w its mesh has
G = m + w − 1 nodes, at centre − radius + h(j − w/2 + 1), 0 ≤ j < G.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from sumformer.certificates.checker.differences import DifferenceKernel
from sumformer.certificates.checker.network import Network, channel_failures, use_failures
from sumformer.certificates.checker.proof import MAX_FEATURES
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.tree import Reduce
from sumformer.targets.walk import postorder

WIDTHS = range(2, 17, 2)
MAX_SAMPLES = 2**24  # of one kernel


@dataclass(frozen=True)
class Mesh:
    """Of one kernel: m for each of its coordinates, and w; how its nodes are summed over."""

    intervals: tuple[int, ...]
    width: int
    by_frequencies: bool

    @property
    def nodes(self) -> tuple[int, ...]:
        """G for each coordinate."""
        return tuple(m + self.width - 1 for m in self.intervals)

    @property
    def differences(self) -> tuple[int, ...]:
        """2G − 1: the shape of the samples."""
        return tuple(2 * nodes - 1 for nodes in self.nodes)


@dataclass(frozen=True)
class MeshNetwork:
    """All of config.json. Channels and products of `sums` have no support, its kernels no degrees: there are none."""

    sums: Network
    meshes: tuple[Mesh, ...]

    @property
    def latent_dimension(self) -> int:
        """Over all products, its series (b, p) times its nodes."""
        terms = [term for r in self.sums.reductions for terms in r.components for term in terms]
        series = {(term.product, term.channel, term.polynomial) for term in terms}
        return sum(self.nodes(product) for product, _, _ in series if 0 <= product < len(self.sums.products))

    def nodes(self, product: int) -> int:
        """Π G over the kernels of a product."""
        kernels = self.sums.products[product].kernels
        return prod(prod(self.meshes[g].nodes) for g in kernels if 0 <= g < len(self.meshes))

    def spacings(self, g: int) -> tuple[Fraction, ...]:
        """h for each coordinate of kernel g."""
        pairs = zip(self.sums.kernels[g].coordinates, self.meshes[g].intervals, strict=True)
        return tuple(2 * self.sums.radius[c] / m for c, m in pairs)

    def radii(self, g: int) -> tuple[Fraction, ...]:
        """For each coordinate of kernel g."""
        return tuple(self.sums.radius[c] for c in self.sums.kernels[g].coordinates)

    def kernel(self, g: int) -> DifferenceKernel:
        """K_g as a function of x − y, or `Unproved`."""
        return DifferenceKernel.of(self.sums.kernels[g].expression, self.sums.d)


def structural_failures(net: MeshNetwork) -> list[str]:
    """Every reason why the network would not compute what the proof says it computes."""
    out: list[str] = []
    if not 2 <= net.sums.group <= 2**20:
        out.append(f"group: expected 2 to 2^20 tokens, got {net.sums.group}")
    for i, channel in enumerate(net.sums.channels):
        out += [f"channel {i}: {why}" for why in channel_failures(channel, net.sums.d)]
    for g in range(len(net.sums.kernels)):
        out += [f"kernel {g}: {why}" for why in _kernel(net, g)]
    if out:  # products look at the meshes of their kernels
        return out
    for j in range(len(net.sums.products)):
        out += [f"product {j}: {why}" for why in _product(net, j)]
    return out or use_failures(net.sums)


def _kernel(net: MeshNetwork, g: int) -> list[str]:
    kernel, mesh, d = net.sums.kernels[g], net.meshes[g], net.sums.d
    c, out = kernel.coordinates, []
    if not c or len(set(c)) != len(c) or not all(0 <= k < d for k in c):
        out.append("its coordinates are not distinct coordinates of a token")
    if len(c) != len(mesh.intervals) or not all(m >= 1 for m in mesh.intervals):
        out.append("it has not one number of intervals ≥ 1 per coordinate")
    if mesh.width not in WIDTHS:
        out.append(f"its width is not an even number from {WIDTHS[0]} to {WIDTHS[-1]}")
    elif prod(mesh.differences) > MAX_SAMPLES:
        out.append(f"it has more than {MAX_SAMPLES} samples")
    if kernel.expression.width != 1:
        return [*out, f"its expression has width {kernel.expression.width}, not 1"]
    if any(isinstance(part, Reduce) for part in postorder(kernel.expression)):
        return [*out, "its expression contains a reduction"]
    try:
        if net.kernel(g).coordinates != frozenset(c):
            out.append("its expression does not mention the coordinates that are listed")
    except Unproved as why:
        out.append(str(why))
    return out


def _product(net: MeshNetwork, j: int) -> list[str]:
    kernels = net.sums.products[j].kernels
    if not all(0 <= g < len(net.sums.kernels) for g in kernels):
        return ["it names a kernel that does not exist"]
    coordinates = [c for g in kernels for c in net.sums.kernels[g].coordinates]
    if len(set(coordinates)) != len(coordinates):
        return ["two of its kernels use one coordinate"]
    if net.nodes(j) > MAX_FEATURES:
        return [f"it has more than {MAX_FEATURES} nodes"]
    return []
