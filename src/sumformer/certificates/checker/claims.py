"""Where a certificate of an `ExpressionSumformer` contradicts its network, or what is found from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sumformer.certificates.certificate import CERTIFICATE_FILE, OF_A_SUMFORMER, OWN_TOKEN, Certificate
from sumformer.certificates.checker.ellipse import remainder
from sumformer.certificates.checker.files import Tensors
from sumformer.certificates.checker.interval import Floats
from sumformer.certificates.checker.json_values import MAX_DEGREE, has_keys, is_integer, number
from sumformer.certificates.checker.kernel_error import KernelConstants, KernelError
from sumformer.certificates.checker.network import Network, evaluates_functions
from sumformer.certificates.checker.verdict import assumption_failures, key_failures
from sumformer.errors import FileFormatError, SumformerError
from sumformer.targets.parser import parse
from sumformer.targets.target import Target

NAMES = ("interpolation remainder", "dropped and rounded coefficients", "rounding")
KINDS = dict(zip(NAMES, ("proved", "enclosed", "rounding"), strict=True))
ROUTES = ("exact", "sums")
_OF_A_KERNEL = {"expression", "degree", "interpolation_degree", "ellipses", "range", "remainder", "dropped"}


def field_failures(c: Certificate, f: Target, net: Network) -> list[str]:
    """Where certificate, target and configuration disagree."""
    out = []
    if c.route not in ROUTES or (c.route == "exact" and net.kernels):
        out.append(f"route: {c.route!r} is not known, or not that of a network with kernels")
    return out + network_failures(c, f, net, net.latent_dimension)


def network_failures(c: Certificate, f: Target, net: Network, latent_dimension: int) -> list[str]:
    """The same, of what every network of sums has; d' is as its features are counted."""
    optional = {"positions", "written"} if "positions" in c.constants else {"merges"}
    out = key_failures(c.constants, {"kernels"}, optional)
    if (c.architecture, c.norm) != ("sumformer", "sup"):
        out.append(f"architecture, norm: {c.architecture!r} in {c.norm!r} is not what this network is")
    if net.expression != f.countless:
        out.append("target: the network's expression is not the certificate's target")
    if net.centre != f.box.centre or net.radius != f.box.radius:
        out.append("box: the network's centre and radius are not those of the certificate's box")
    if net.arithmetic != c.arithmetic:
        out.append(f"arithmetic: the certificate says {c.arithmetic!r}, the network {net.arithmetic!r}")
    if latent_dimension != c.latent_dimension:
        got = f"the certificate says {c.latent_dimension}, the network has {latent_dimension}"
        out.append(f"latent_dimension: {got}")
    own = (OWN_TOKEN,) if OWN_TOKEN in c.assumptions else ()
    return out + assumption_failures(c, *OF_A_SUMFORMER, *own, functions=evaluates_functions(net))


def weight_failures(tensors: Tensors, net: Network) -> list[str]:
    """Exactly the coefficient matrices, of the right shape and type, finite."""
    dtype = np.dtype(np.float32 if net.arithmetic == "float32" else np.float64)
    return tensor_failures(tensors, {f"coefficients.{g}": kernel.shape for g, kernel in enumerate(net.kernels)}, dtype)


def tensor_failures(tensors: Tensors, wanted: Mapping[str, tuple[int, ...]], dtype: np.dtype[Any]) -> list[str]:
    """Exactly the tensors that are `wanted`, of these shapes and this type, finite."""
    out = [f"weights: unknown tensor {name}" for name in sorted(tensors.keys() - wanted.keys())]
    for name, shape in wanted.items():
        if name not in tensors:
            out.append(f"weights: {name} is missing")
        elif tensors[name].shape != shape or tensors[name].dtype != dtype:
            got = f"{tensors[name].dtype} {tensors[name].shape}"
            out.append(f"weights: {name} should be {dtype} {shape}, is {got}")
        elif not bool(np.isfinite(tensors[name]).all()):
            out.append(f"weights: {name} has entries that are not finite")
    return out


def read_constants(folder: Path, c: Certificate, net: Network) -> tuple[list[KernelConstants], list[str]]:
    """What the certificate records of each kernel, and where it does not fit the network."""
    path, out, failures = folder / CERTIFICATE_FILE, [], []
    entries = c.constants.get("kernels", [])
    if len(entries) != len(net.kernels):
        failures.append(f"constants: expected {len(net.kernels)} kernels, got {len(entries)}")
    for g, (entry, kernel) in enumerate(zip(entries, net.kernels, strict=False)):
        try:
            constants, expression = _constants(entry), parse(entry["expression"], net.d, free_y=True)
        except (KeyError, TypeError, ValueError, OverflowError, SumformerError) as error:
            raise FileFormatError(path, f"the constants of kernel {g} cannot be read ({error})") from error
        if expression != kernel.expression:
            failures.append(f"constants: the expression of kernel {g} is not the network's")
        if not is_integer(entry["degree"]) or entry["degree"] != max((*kernel.x_degrees, *kernel.y_degrees)):
            failures.append(f"constants: the degree of kernel {g} is not the network's")
        out.append(constants)
    return out, failures


def _constants(entry: Any) -> KernelConstants:
    has_keys(entry, _OF_A_KERNEL)
    for ellipse in entry["ellipses"]:
        has_keys(ellipse, {"variable", "rho", "maximum"})
    degree, ellipses = entry["interpolation_degree"], entry["ellipses"]
    if not is_integer(degree) or not 0 <= degree <= MAX_DEGREE:
        raise ValueError(f"interpolation_degree: expected an integer from 0 to {MAX_DEGREE}")
    if [e["variable"] for e in ellipses] != list(range(len(ellipses))):
        raise ValueError("ellipses: expected one for each variable, in order")
    low, high = entry["range"]
    return KernelConstants(
        degree,
        tuple(number(e["rho"]) for e in ellipses),
        tuple(number(e["maximum"]) for e in ellipses),
        number(entry["remainder"]),
        number(entry["dropped"]),
        (number(low), number(high)),
    )


def constant_failures(g: int, recorded: KernelConstants, proved: KernelError) -> list[str]:
    """Recorded constants that are refuted, or that do not follow from each other.

    They do not enter the bound (ρ and N aside); what a reader sees must nevertheless be true.
    """
    out = []
    for v, (mine, claimed) in enumerate(zip(proved.maxima, recorded.maxima, strict=True)):
        if not mine <= 1.5 * claimed:
            out.append(f"constants: kernel {g}, variable {v}: M ≤ {claimed:.6g} is recorded, {mine:.6g} is proved")
    formula = remainder(recorded.maxima, recorded.rhos, recorded.degree)
    if not 0.999 * formula <= recorded.remainder <= 1.001 * formula:
        out.append(f"constants: kernel {g}: the remainder {recorded.remainder:.6g} is not that of its ρ, M and degree")
    # too large is harmless: the bound does not use it. Far from 0 the constructor's own rounding may dominate it.
    room = 1e-7 * max(abs(end) for end in recorded.range)
    enough = max(proved.least_gap * 0.999 - 1e-300, proved.gap / 1.4 - room)
    if not enough <= recorded.dropped <= 32 * proved.gap + room:
        out.append(f"constants: kernel {g}: dropped is recorded as {recorded.dropped:.6g}, found {proved.gap:.6g}")
    return out + range_failures(g, recorded.range, proved.node_range)


def range_failures(g: int, recorded: tuple[float, float], found: tuple[float, float]) -> list[str]:
    """A range that does not hold the values `found`, or is far wider."""
    (low, high), (least, most) = recorded, found
    width = most - least + 1e-9 * (abs(least) + abs(most))
    near = 1e-9 * width + 2.0**-48 * max(abs(least), abs(most))  # two enclosures may differ by some ulp
    wide = 16 * (width + max(abs(least), abs(most)))  # cells need not enclose closely, and the bound does not use it
    if not (least - wide <= low <= least + near and most - near <= high <= most + wide):
        return [f"constants: kernel {g}: the range {recorded} is not that of the kernel"]
    return []


def as_matrices(tensors: Tensors, net: Network) -> tuple[Floats, ...]:
    """The coefficient matrices, exactly, as float64."""
    return tuple(np.asarray(tensors[f"coefficients.{g}"], dtype=np.float64) for g in range(len(net.kernels)))
