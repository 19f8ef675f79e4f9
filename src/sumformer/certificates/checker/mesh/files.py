"""config.json of a `MeshSumformer`, read within bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sumformer.certificates.checker.files import check_network, read_described, with_parts
from sumformer.certificates.checker.json_values import has_keys, integer, items, multi_index
from sumformer.certificates.checker.mesh.network import MAX_SAMPLES, Mesh, MeshNetwork
from sumformer.certificates.checker.network import Channel, Kernel, Product
from sumformer.targets.parser import parse


def read_network(folder: Path, d: int) -> MeshNetwork:
    """config.json; `d` is what the certificate says."""
    return read_described(folder, "a network on meshes", lambda data: network_of(data, d))


def network_of(data: Any, d: int) -> MeshNetwork:
    check_network(data, d, "MeshSumformer", ("float64", "mixed"))
    kernels = [_kernel(k, d) for k in items(data["kernels"])]
    sums = with_parts(
        data,
        d,
        channels=tuple(_channel(c, d) for c in items(data["channels"])),
        kernels=tuple(kernel for kernel, _ in kernels),
        products=tuple(_product(p) for p in items(data["products"])),
    )
    return MeshNetwork(sums, tuple(mesh for _, mesh in kernels))


def _channel(data: Any, d: int) -> Channel:
    has_keys(data, {"factor"})
    return Channel(parse(data["factor"], d, free_y=True), support=())


def _kernel(data: Any, d: int) -> tuple[Kernel, Mesh]:
    has_keys(data, {"expression", "coordinates", "intervals", "width", "sums"})
    if data["sums"] not in ("pairs", "frequencies"):
        raise ValueError("expected sums by pairs or frequencies")
    expression, coordinates = parse(data["expression"], d, free_y=True), multi_index(data["coordinates"])
    intervals = tuple(integer(m, 0, MAX_SAMPLES) for m in items(data["intervals"]))
    mesh = Mesh(intervals, integer(data["width"], 0, 64), data["sums"] == "frequencies")
    return Kernel(expression, coordinates, x_degrees=(), y_degrees=()), mesh


def _product(data: Any) -> Product:
    has_keys(data, {"kernels"})
    return Product(multi_index(data["kernels"]), support=())
