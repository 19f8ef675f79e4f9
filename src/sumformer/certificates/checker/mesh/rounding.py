"""Rounding of V_t = Σ_i Π_c ℓ_{i_c}(x') Σ_j Π_g S_g[i − j] · mean(b p_t Π_c ℓ_{j_c}), x' and S as they are.

In absolute value the summands add up to at most ‖p‖₁ Π_g Λ^{2k} max|S_g| · mean|b|; every one of them carries (1 + δ)
for each rounding on its way, so the longest way counts. All bounds are relative to mean|b|.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.features import combine, norm_of, table_error
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.mesh.frequencies import relative_rounding, spectrum
from sumformer.certificates.checker.mesh.lagrange import lebesgue
from sumformer.certificates.checker.mesh.network import Mesh
from sumformer.certificates.checker.network import Network, Polynomial, Term
from sumformer.certificates.checker.upward import times


@dataclass(frozen=True)
class MeshRounding:
    """Of `net` with its `meshes` in `arithmetic`, samples `weights`, at most `tokens` tokens.

    Masses of parts are added to each other `merges` deep.
    """

    meshes: tuple[Mesh, ...]
    net: Network
    arithmetic: Arithmetic
    weights: tuple[Floats, ...]
    tokens: int
    merges: int = 0

    @cached_property
    def masses(self) -> tuple[float, ...]:
        """Λ^{2k} max|S_g|."""
        pairs = zip(self.meshes, self.weights, strict=True)
        return tuple(self._norm(mesh) * float(np.abs(S).max()) * (1 + 1e-12) for mesh, S in pairs)

    def _norm(self, mesh: Mesh) -> float:
        return float(lebesgue(mesh.width) ** (2 * len(mesh.intervals))) * (1 + 1e-12)

    def _meshes(self, product: int) -> list[Mesh]:
        return [self.meshes[g] for g in self.net.products[product].kernels]

    def _places(self, product: int) -> int:
        """Π w: the nodes that a token meets."""
        return prod(mesh.width for mesh in self._meshes(product) for _ in mesh.intervals)

    def additions(self) -> int:
        """Above one token: in any order in its group, then the groups one after another, then parts.

        A token gives a node one number at most, and adding 0 is exact: never more than n − 1.
        """
        groups = -(-self.tokens // self.net.group)
        return min(self.tokens - 1, self.net.group - 1 + groups - 1) + self.merges

    def series(self, term: Term, size: float, error: float, *, own: bool = False) -> float:
        """A bound of |V̂_t − V_t| where |b| ≤ size, |b̂ − b| ≤ error on every token (or size 1 and error relative)."""
        a = self.arithmetic
        if not a.u:
            return 0.0
        norm, masses = norm_of(term.polynomial), [self.masses[g] for g in self.net.products[term.product].kernels]
        degrees = [max((gamma[c] for gamma, _ in term.polynomial), default=0) for c in range(self.net.d)]
        tables = [
            float(table_error(a, self.net.centre[c], self.net.radius[c], degrees[c])[-1]) for c in range(self.net.d)
        ]
        drift, count = combine(*tables), self._of_series(term.polynomial)
        count += self._own(term.product) if own else self._over_tokens(term.product)
        both = (size + error) * (1 + drift)
        counted, summed = a.gamma(count), 0.0 if own else self._by_frequencies(term.product)
        lost = error * (1 + drift) + size * drift + both * (counted + summed + counted * summed)
        return float(times(norm, *masses, lost)) + self.underflow(
            term.product, norm, size + error, len(term.polynomial)
        )

    def _of_series(self, polynomial: Polynomial) -> int:
        """b(y)·p(v): a stored coefficient, its products with d tables, the sum of all, the product with b."""
        return 1 + self.net.d + len(polynomial) + 1

    def _over_tokens(self, product: int) -> int:
        """Roundings between b p and V_t.

        How often the token counts (3: that number, its product, all of them together), the additions, the division by n
        and n itself; on either side k products and 2w for each weight ℓ_a (w − 1 steps r + s − b, w − 1 products, the
        stored 1/Π(a − b)); Π G products and additions for each kernel whose nodes meet in pairs; the Π w numbers that
        meet at x.
        """
        meshes = self._meshes(product)
        k = sum(len(mesh.intervals) for mesh in meshes)
        weights = sum(2 * mesh.width * len(mesh.intervals) for mesh in meshes)
        places = self._places(product)
        counting = 3 + self.additions() + 1 + self.arithmetic.count_roundings(self.tokens)
        paired = sum(prod(mesh.nodes) for mesh in meshes if not mesh.by_frequencies)
        return counting + 2 * (weights + k) + paired + places

    def _by_frequencies(self, product: int) -> float:
        """Of all kernels whose sums over nodes go by frequencies, in units of Π max|S_g|: one after another."""
        drifts = [self._of_frequencies[g] for g in self.net.products[product].kernels if self.meshes[g].by_frequencies]
        return combine(*drifts)

    @cached_property
    def _of_frequencies(self) -> tuple[float, ...]:
        pairs = zip(self.meshes, self.weights, strict=True)
        return tuple(relative_rounding(m.nodes, S, self.arithmetic) if m.by_frequencies else 0.0 for m, S in pairs)

    def _own(self, product: int) -> int:
        """The same for the own token alone.

        For each coordinate both weights, their product and its sum over ≤ w pairs of one difference, the product with a
        sample and the sum over 2w − 1 of them; for each kernel the product with what was there.
        """
        meshes = self._meshes(product)
        return sum(len(mesh.intervals) * (4 * mesh.width + mesh.width + 2 * mesh.width) + 1 for mesh in meshes)

    def underflow(self, product: int, norm: float, size: float, width: int) -> float:
        """Every elementary result may be off by `tiny`, times what it is still multiplied by.

        All results there are, d + width + 6 for b p, some k + 2 for each of Π w nodes, Π G products for each kernel on
        each node, times everything that any of them may meet; weights ℓ_a do not underflow, being 0 or above 1e-30.
        """
        meshes = self._meshes(product)
        nodes = prod(prod(mesh.nodes) for mesh in meshes)
        k = sum(len(mesh.intervals) for mesh in meshes)
        results = (self.net.d + width + 6) + (k + 2) * (self._places(product) + nodes) * 16**k
        return 8 * self.arithmetic.tiny * float(results * nodes) * self._reach(product) * (1 + norm) * (1 + size)

    def overflows(self, product: int, norm: float, size: float) -> bool:
        """Whether some intermediate number of the sums may leave the range of the arithmetic."""
        return not 8 * (1 + size) * (1 + norm) * self._reach(product) * self.tokens < self.arithmetic.huge

    def _reach(self, product: int) -> float:
        """≥ every product of weights ℓ, their sums, and samples of some of the kernels, or of their spectra."""
        found = 1.0
        for g in self.net.products[product].kernels:
            mesh = self.meshes[g]
            grown = float(spectrum(mesh.nodes)) ** 2 if mesh.by_frequencies else 1.0
            found *= (1 + self.masses[g]) * self._norm(mesh) * grown
        return found
