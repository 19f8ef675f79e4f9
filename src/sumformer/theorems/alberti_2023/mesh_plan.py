"""Which meshes: the choice that turns a decomposition and a tolerance into a `MeshSumformer`'s shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from sumformer.errors import RefusedError
from sumformer.targets import Node
from sumformer.theorems.alberti_2023.arithmetic import Arithmetic
from sumformer.theorems.alberti_2023.components import coordinates
from sumformer.theorems.alberti_2023.decomposition import Decomposition
from sumformer.theorems.alberti_2023.interpolation import KernelStudy
from sumformer.theorems.alberti_2023.mesh_kernel import MAX_NODES, MeshKernelPlan, MeshStudy, of_differences
from sumformer.theorems.alberti_2023.mesh_roundings import MeshRoundings
from sumformer.theorems.alberti_2023.plan import terms_of

SHARE = 0.9  # of a kernel's allowance that its remainder may take


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
        kernels = {}
        for node, study in studies.items():
            mesh = self.known.setdefault(study, MeshStudy(study))
            where = tuple(sorted(coordinates(node)))
            axes = max(_axes(t.kernels) for t in terms_of(decomposition) if node in t.kernels)
            kernels[node] = mesh.plan(where, axes, SHARE * tolerance * scales[node], SHARE * tolerance, self.arithmetic)
        products = {t.kernels: MeshProductPlan(t.kernels) for t in terms_of(decomposition)}
        plan = MeshPlan(decomposition, kernels, products)
        for chosen in products:
            if plan.nodes(chosen) > MAX_NODES:
                raise RefusedError(
                    "route mesh: the mesh this needs is beyond the budget",
                    [f"{plan.nodes(chosen):,} nodes; at most {MAX_NODES:,} are taken: a larger ε needs fewer"],
                )
        return plan


def _axes(kernels: tuple[Node, ...]) -> int:
    return sum(len(coordinates(k)) for k in kernels)
