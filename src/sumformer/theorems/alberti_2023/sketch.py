"""What a tolerance comes to in the bound, before there is a plan: kernels that err by all they may, no rounding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, prod

from sumformer.targets import Node
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.decomposition import Decomposition, Term
from sumformer.theorems.alberti_2023.interpolation import KernelStudy
from sumformer.theorems.alberti_2023.plan import ProductPlan, terms_of


@dataclass(frozen=True)
class SketchedKernel:
    """Any K̃ with sup |K − K̃| ≤ remainder."""

    range: tuple[float, float]
    remainder: float
    dropped: float = 0.0
    relative_remainder: float = inf
    relative_dropped: float = inf

    @property
    def mass(self) -> float:
        return max(abs(end) for end in self.range)


@dataclass(frozen=True)
class NoRoundings:
    """All 0."""

    n_max: int

    def growth(self, term: Term) -> float:
        return 1.0

    def relative(self, term: Term, channel_error: float, scale: float) -> float:
        return 0.0


@dataclass(frozen=True)
class Sketch:
    """As much of a plan as the bound without roundings asks for."""

    decomposition: Decomposition
    kernels: Mapping[Node, SketchedKernel]
    products: Mapping[tuple[Node, ...], ProductPlan]

    def roundings(self, arithmetic: Arithmetic, u: float, n_max: int) -> NoRoundings:
        return NoRoundings(n_max)


def sketched(
    decomposition: Decomposition,
    studies: Mapping[Node, KernelStudy],
    scales: Mapping[Node, float],
    tolerance: float,
    product_scales: Mapping[tuple[Node, ...], float] | None = None,
) -> Sketch:
    """Of the errors that `make_plan` allows at this tolerance."""
    kernels = {k: SketchedKernel(study.range, tolerance * scales[k]) for k, study in studies.items()}
    products = {}
    for used in {t.kernels for t in terms_of(decomposition)}:
        scale = (product_scales or {}).get(used, prod(scales[k] for k in used))
        products[used] = ProductPlan(used, (), tolerance * scale / 2 if used else 0.0)
    return Sketch(decomposition, kernels, products)
