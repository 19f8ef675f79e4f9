"""How far K̃ = Π_g K̃_g (over the kept features) is from K = Π_g K_g: absolutely, and relative to K > 0."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, prod

from sumformer.algebra.tracked import INFLATE
from sumformer.targets import Node
from sumformer.theorems.alberti_2023.decomposition import Term
from sumformer.theorems.alberti_2023.mesh_plan import MeshPlan
from sumformer.theorems.alberti_2023.plan import Plan
from sumformer.theorems.alberti_2023.sketch import Sketch


@dataclass(frozen=True)
class Switches:
    """What is counted: everything, or less, to tell the terms of a certificate apart."""

    remainder: bool = True
    dropped: bool = True
    rounding: bool = True


@dataclass(frozen=True)
class KernelErrors:
    """Bounds of K, K̃ and K − K̃ for the kernels of a term; 1 and 0 where a term has none."""

    plan: Plan | MeshPlan | Sketch
    switches: Switches

    def absolute(self, term: Term) -> float:
        """sup |K − K̃| ≤ Π(max_g + e_g) − Π max_g + what was left out; the difference as a sum of positive parts."""
        grown, top = 0.0, 1.0
        for kernel in term.kernels:
            error, largest = self._single(kernel), self._largest(kernel)
            grown = grown * (largest + error) + top * error
            top *= largest
        return (grown + self._left_out(term)) * INFLATE

    def relative(self, term: Term) -> float:
        """η = sup |K̃ − K| / K for K > 0; ∞ where K may be 0."""
        if not self.minimum(term) > 0:
            return float("inf")
        parts = sum(min(self._single(k) / self.plan.kernels[k].range[0], self._share(k)) for k in term.kernels)
        if not parts < 1.0:
            return float("inf")
        return (expm1(parts) + self._left_out(term) / self.minimum(term) * INFLATE) * INFLATE

    def maximum(self, term: Term) -> float:
        """sup |K|."""
        return prod(self._largest(k) for k in term.kernels) * INFLATE

    def minimum(self, term: Term) -> float:
        """inf K, where every factor is positive; 0 where one is not."""
        lowest = [self.plan.kernels[k].range[0] for k in term.kernels]
        return prod(lowest) / INFLATE if all(low > 0 for low in lowest) else 0.0

    def nonnegative(self, term: Term) -> bool:
        """Every factor is."""
        return all(self.plan.kernels[k].range[0] >= 0 for k in term.kernels)

    def mass(self, term: Term) -> float:
        """What bounds |K̃| and carries every rounding: Π_g Σ|A_g|."""
        return prod(self.masses(term)) * INFLATE

    def masses(self, term: Term) -> list[float]:
        """Of each kernel: they are applied one after another."""
        return [self.plan.kernels[k].mass for k in term.kernels]

    def _largest(self, kernel: Node) -> float:
        return max(abs(end) for end in self.plan.kernels[kernel].range)

    def _single(self, kernel: Node) -> float:
        plan = self.plan.kernels[kernel]
        remainder = plan.remainder if self.switches.remainder else 0.0
        found = (remainder + (plan.dropped if self.switches.dropped else 0.0)) * INFLATE
        return min(found, self._share(kernel) * self._largest(kernel) * INFLATE)

    def _share(self, kernel: Node) -> float:
        """sup |K̃ − K|/K of one, by itself; ∞ where it is not known."""
        plan = self.plan.kernels[kernel]
        remainder = plan.relative_remainder if self.switches.remainder else 0.0
        dropped = plan.relative_dropped if self.switches.dropped else 0.0
        return ((1 + remainder) * (1 + dropped) - 1) * INFLATE if remainder + dropped < 1 else float("inf")

    def _left_out(self, term: Term) -> float:
        return self.plan.products[term.kernels].left_out if self.switches.dropped else 0.0
