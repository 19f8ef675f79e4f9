"""Where a certificate of a `MeshSumformer` contradicts its network, or what is found from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sumformer.certificates.certificate import CERTIFICATE_FILE, Certificate
from sumformer.certificates.checker.claims import network_failures, range_failures, tensor_failures
from sumformer.certificates.checker.files import Tensors
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.json_values import has_keys, items, number, pair, same
from sumformer.certificates.checker.mesh.kernel_error import MeshConstants, MeshError, linear_remainder, remainder
from sumformer.certificates.checker.mesh.network import MeshNetwork
from sumformer.errors import FileFormatError, SumformerError
from sumformer.targets.parser import parse
from sumformer.targets.target import Target

NAMES = ("interpolation remainder", "rounded samples and places", "rounding")
KINDS = dict(zip(NAMES, ("proved", "enclosed", "rounding"), strict=True))
_RESULTS = {"remainder", "dropped", "relative"}
_OF_A_KERNEL = {"expression", "width", "intervals", "sums", "strips", "slants", "range", *_RESULTS}
_ULPS = 2.0**-42  # of the largest |K|: what two ways to evaluate and enclose it may differ by


def field_failures(c: Certificate, f: Target, net: MeshNetwork) -> list[str]:
    """Where certificate, target and configuration disagree."""
    out = [] if c.route == "mesh" else [f"route: {c.route!r} is not that of a network on meshes"]
    return out + network_failures(c, f, net.sums, net.latent_dimension)


def weight_failures(tensors: Tensors, net: MeshNetwork) -> list[str]:
    """Exactly the samples, of the right shape, finite."""
    wanted = {f"samples.{g}": mesh.differences for g, mesh in enumerate(net.meshes)}
    return tensor_failures(tensors, wanted, np.dtype(np.float64))


def as_samples(tensors: Tensors, net: MeshNetwork) -> tuple[Floats, ...]:
    return tuple(np.asarray(tensors[f"samples.{g}"], dtype=np.float64) for g in range(len(net.meshes)))


def read_constants(folder: Path, c: Certificate, net: MeshNetwork) -> tuple[list[MeshConstants], list[str]]:
    """What the certificate records of each kernel, and where it does not fit the network."""
    path, out, failures = folder / CERTIFICATE_FILE, [], []
    entries = c.constants.get("kernels", [])
    if len(entries) != len(net.meshes):
        failures.append(f"constants: expected {len(net.meshes)} kernels, got {len(entries)}")
    for g, (entry, kernel, mesh) in enumerate(zip(entries, net.sums.kernels, net.meshes, strict=False)):
        try:
            constants, expression = _constants(entry), parse(entry["expression"], net.sums.d, free_y=True)
        except (KeyError, TypeError, ValueError, OverflowError, SumformerError) as error:
            raise FileFormatError(path, f"the constants of kernel {g} cannot be read ({error})") from error
        if expression != kernel.expression:
            failures.append(f"constants: the expression of kernel {g} is not the network's")
        if not same(entry["width"], mesh.width) or not same(entry["intervals"], list(mesh.intervals)):
            failures.append(f"constants: the width or the intervals of kernel {g} are not the network's")
        if not same(entry["sums"], "frequencies" if mesh.by_frequencies else "pairs"):
            failures.append(f"constants: how kernel {g} is summed is not the network's")
        used, unused = ("slants", "strips") if mesh.width == 2 else ("strips", "slants")
        if entry[unused] or not same([bound["coordinate"] for bound in entry[used]], list(kernel.coordinates)):
            failures.append(f"constants: the {used} of kernel {g} are not one for each coordinate, in order")
        out.append(constants)
    return out, failures


def _constants(entry: Any) -> MeshConstants:
    has_keys(entry, _OF_A_KERNEL)
    strips, slants = items(entry["strips"]), items(entry["slants"])
    for strip in strips:
        has_keys(strip, {"coordinate", "reach", "maximum"})
    for slant in slants:
        has_keys(slant, {"coordinate", "slope", "log_slope"})
    low, high = pair(entry["range"])
    return MeshConstants(
        tuple(number(strip["reach"]) for strip in strips),
        tuple(number(strip["maximum"]) for strip in strips),
        tuple(number(slant["slope"]) for slant in slants),
        tuple(_known(slant["log_slope"]) for slant in slants),
        number(entry["remainder"]),
        number(entry["dropped"]),
        _known(entry["relative"]),
        (number(low), number(high)),
    )


def _known(value: Any) -> float | None:
    return None if value is None else number(value)


def constant_failures(net: MeshNetwork, g: int, recorded: MeshConstants, proved: MeshError) -> list[str]:
    """Recorded constants that are refuted, or that do not follow from each other.

    They do not enter the bound (δ aside, and whether ℓ is known); what a reader sees must nevertheless be true.
    """
    coordinates, spacings = net.sums.kernels[g].coordinates, net.spacings(g)
    if net.meshes[g].width == 2:
        out = _refuted(g, coordinates, "L", proved.maxima, recorded.slopes)
        logs = tuple(s for s in recorded.log_slopes if s is not None)
        out += _refuted(g, coordinates, "ℓ", proved.log_slopes, logs) if len(logs) == len(coordinates) else []
        formula = linear_remainder(recorded.slopes, spacings)
        if recorded.relative is not None and not proved.share <= 2 * recorded.relative + _ULPS:
            found = f"{recorded.relative:.6g} is recorded, {proved.share:.6g} is proved"
            out.append(f"constants: kernel {g}, as a share of K: {found}")
    else:
        out = _refuted(g, coordinates, "M", proved.maxima, recorded.maxima)
        formula = remainder(recorded.maxima, recorded.reaches, spacings, net.meshes[g].width)
    if not 0.999 * formula <= recorded.remainder <= 1.001 * formula:
        out.append(f"constants: kernel {g}: the remainder {recorded.remainder:.6g} is not that of its bounds")
    room = _ULPS * max(abs(end) for end in recorded.range)
    enough = max(proved.least_gap * 0.999, proved.gap / 1.4 - room)
    if not enough <= recorded.dropped <= 32 * proved.gap + room:  # too large is harmless: the bound does not use it
        out.append(f"constants: kernel {g}: dropped is recorded as {recorded.dropped:.6g}, found {proved.gap:.6g}")
    return out + range_failures(g, recorded.range, proved.node_range)


def _refuted(
    g: int, coordinates: Sequence[int], name: str, proved: Sequence[float], recorded: Sequence[float]
) -> list[str]:
    return [
        f"constants: kernel {g}, coordinate {c}: {name} ≤ {claimed:.6g} is recorded, {mine:.6g} is proved"
        for c, mine, claimed in zip(coordinates, proved, recorded, strict=True)
        if not mine <= 1.5 * claimed
    ]
