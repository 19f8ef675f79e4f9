"""The kernels and products of a `MeshSumformer`, read from its configuration: which meshes there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from sumformer.errors import InputError
from sumformer.nn.expression_parts import SeriesOfProduct
from sumformer.nn.mesh import Mesh

SUMS = ("pairs", "frequencies")


@dataclass(frozen=True)
class MeshKernel:
    """K at the differences of the nodes, on one mesh for each coordinate that it mentions; how sums over them go."""

    coordinates: tuple[int, ...]
    meshes: tuple[Mesh, ...]
    by_frequencies: bool = False

    @staticmethod
    def read(data: Mapping[str, Any], d: int) -> MeshKernel:
        coordinates, width = tuple(int(c) for c in data["coordinates"]), int(data["width"])
        intervals = tuple(int(m) for m in data["intervals"])
        if len(set(coordinates)) != len(coordinates) or not all(0 <= c < d for c in coordinates):
            raise InputError(f"kernel: expected distinct coordinates from 0 to {d - 1}")
        if len(intervals) != len(coordinates) or not coordinates or min(intervals) < 1 or width < 2 or width % 2:
            raise InputError("kernel: expected one number of intervals for each coordinate, and an even width")
        if data["sums"] not in SUMS:
            raise InputError(f"kernel: expected sums by {' or '.join(SUMS)}, got {data['sums']!r}")
        return MeshKernel(coordinates, tuple(Mesh(m, width) for m in intervals), data["sums"] == "frequencies")

    @property
    def shape(self) -> tuple[int, ...]:
        """Nodes along each coordinate."""
        return tuple(mesh.nodes for mesh in self.meshes)

    @property
    def differences(self) -> tuple[int, ...]:
        """Of the samples: node i less node j."""
        return tuple(2 * nodes - 1 for nodes in self.shape)


@dataclass
class MeshProduct(SeriesOfProduct):
    """Kernels of different coordinates; every series has its masses on the product of their meshes."""

    kernels: tuple[int, ...]
    parts: tuple[MeshKernel, ...]

    @staticmethod
    def read(data: Mapping[str, Any], kernels: Sequence[MeshKernel]) -> MeshProduct:
        chosen = tuple(int(k) for k in data["kernels"])
        if not all(0 <= k < len(kernels) for k in chosen):
            raise InputError("product: one of its kernels does not exist")
        product = MeshProduct(chosen, tuple(kernels[k] for k in chosen))
        if len(set(product.coordinates)) != len(product.coordinates):
            raise InputError("product: two of its kernels mention one coordinate")
        return product

    @property
    def coordinates(self) -> tuple[int, ...]:
        return tuple(c for part in self.parts for c in part.coordinates)

    @property
    def meshes(self) -> tuple[Mesh, ...]:
        return tuple(mesh for part in self.parts for mesh in part.meshes)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(mesh.nodes for mesh in self.meshes)

    @property
    def size(self) -> int:
        """Features of all series."""
        return prod(self.shape) * self.series_count
