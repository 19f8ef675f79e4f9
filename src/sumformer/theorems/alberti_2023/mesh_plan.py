"""Which meshes: the choice that turns a decomposition and a tolerance into a `MeshSumformer`'s shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, prod, sqrt

from sumformer.errors import RefusedError
from sumformer.targets import Node, to_source
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.components import coordinates
from sumformer.theorems.alberti_2023.decomposition import Decomposition
from sumformer.theorems.alberti_2023.interpolation import DegreeBudgetError, KernelStudy
from sumformer.theorems.alberti_2023.mesh_choice import Choice
from sumformer.theorems.alberti_2023.mesh_kernel import (
    BEYOND,
    MAX_NODES,
    MeshKernelPlan,
    MeshStudy,
    nodes_alike,
    of_differences,
)
from sumformer.theorems.alberti_2023.mesh_roundings import MeshRoundings
from sumformer.theorems.alberti_2023.plan import terms_of

SHARE = 0.9  # of a kernel's allowance that its remainder may take
FINE, MOST_FACTOR = 1.0001, 2.0**100


@dataclass(frozen=True)
class MeshProductPlan:
    """Π_g K̂_g: no feature is left out."""

    kernels: tuple[Node, ...]
    left_out: float = 0.0


@dataclass(frozen=True)
class MeshPlan:
    """Everything the network is made of, before it is a module."""

    decomposition: Decomposition
    kernels: Mapping[Node, MeshKernelPlan]
    products: Mapping[tuple[Node, ...], MeshProductPlan]

    @property
    def channels(self) -> tuple[Node, ...]:
        return tuple(dict.fromkeys(t.channel for t in terms_of(self.decomposition)))

    @property
    def latent_dimension(self) -> int:
        """Masses of every series (b, p) on the nodes of its product."""
        series = {(t.kernels, t.channel, t.polynomial) for t in terms_of(self.decomposition)}
        return sum(self.nodes(kernels) for kernels, _, _ in series)

    def nodes(self, kernels: tuple[Node, ...]) -> int:
        return prod(self.kernels[k].nodes for k in kernels)

    def roundings(self, arithmetic: Arithmetic, u: float, n_max: int) -> MeshRoundings:
        """On the way from tokens to V_t, with unit roundoff u."""
        return MeshRoundings(self, arithmetic, u, n_max)


@dataclass
class MeshPlanner:
    """Plans in one arithmetic; keeps what is found about kernels."""

    arithmetic: Arithmetic
    known: dict[KernelStudy, MeshStudy] = field(default_factory=dict)

    def __call__(
        self,
        decomposition: Decomposition,
        studies: Mapping[Node, KernelStudy],
        scales: Mapping[Node, float],
        tolerance: float,
        dtype: str,
        product_scales: Mapping[tuple[Node, ...], float] | None = None,
    ) -> MeshPlan:
        """The cheapest meshes at this tolerance, relative to the scale of each kernel."""
        if not studies:
            raise RefusedError("route mesh: no factor mixes x and y", ["route sums takes it, without interpolation"])
        of_differences(studies)
        products = {t.kernels: MeshProductPlan(t.kernels) for t in terms_of(decomposition)}
        axes = {node: max(_axes(kernels) for kernels in products if node in kernels) for node in studies}
        meshes = {node: self.known.setdefault(study, MeshStudy(study)) for node, study in studies.items()}

        def choices(relative: float) -> dict[Node, Choice]:
            return {k: mesh.choice(axes[k], relative * scales[k], relative) for k, mesh in meshes.items()}

        relative = SHARE * tolerance
        chosen = choices(relative)
        if over := _over(chosen, axes, products):
            excess = _least(lambda factor: not _over(choices(factor * relative), axes, products))
            raise DegreeBudgetError(BEYOND, [over], excess)
        kernels = {
            k: mesh.plan(tuple(sorted(coordinates(k))), chosen[k], relative * scales[k], self.arithmetic)
            for k, mesh in meshes.items()
        }
        return MeshPlan(decomposition, kernels, products)


def _over(chosen: Mapping[Node, Choice], axes: Mapping[Node, int], products: Iterable[tuple[Node, ...]]) -> str:
    """Which nodes are more than are taken, if any are."""
    nodes, kernel = max(((nodes_alike(c, axes[k]), k) for k, c in chosen.items()), key=lambda found: found[0])
    alike = " with others like it" if axes[kernel] > len(chosen[kernel].shape) else ""
    what = f"{to_source(kernel)}{alike}"
    if nodes <= MAX_NODES:
        sizes = {kernels: prod(prod(chosen[k].shape) for k in kernels) for kernels in products}
        largest = max(sizes, key=sizes.__getitem__)
        nodes, what = sizes[largest], " times ".join(map(to_source, largest))
    return "" if nodes <= MAX_NODES else f"{what} would need {round(nodes):,} nodes; at most {MAX_NODES:,} are taken"


def _least(enough: Callable[[float], bool]) -> float:
    """The least factor above 1 that is, to FINE; ∞ where none was found."""
    low, high = 1.0, 2.0
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST_FACTOR:
            return inf
    while high > FINE * low:
        middle = sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _axes(kernels: tuple[Node, ...]) -> int:
    return sum(len(coordinates(k)) for k in kernels)
