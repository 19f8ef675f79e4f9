"""Folders of a `MeshSumformer` written by hand, with formulas of their own for samples, strips and constants.

M is the largest |k| on a grid of the strip, with a third added; the terms are those found with claims that are far too
large, with the slack an honest construction would have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tampered import sign

from sumformer.certificates.certificate import OF_A_SUMFORMER, Certificate, ErrorTerm
from sumformer.certificates.checker import check
from sumformer.nn.mesh_sumformer import MeshSumformer
from sumformer.targets import to_source
from sumformer.targets.target import target as make_target
from sumformer.targets.walk import reductions as reductions_of

NAMES = ("interpolation remainder", "rounded samples and places", "rounding")
KINDS = ("proved", "enclosed", "rounding")
Complex = np.ndarray[Any, Any]


@dataclass(frozen=True)
class MeshKernelSpec:
    """K as written, k on complex arrays, its mesh, and δ for each coordinate, or with w = 2 the slopes L and ℓ."""

    expression: str
    k: Callable[..., Complex]
    coordinates: Sequence[int]
    intervals: Sequence[int]
    width: int
    reaches: Sequence[float] = ()
    slants: Sequence[tuple[float, float | None]] = ()
    sums: str = "pairs"


@dataclass(frozen=True)
class Spec:
    """A target and the parts of its network."""

    source: str
    kernels: Sequence[MeshKernelSpec]
    products: Sequence[Sequence[int]]
    terms: Sequence[list[list[dict[str, Any]]]]  # of each reduction, inner ones first, for each coordinate
    channels: Sequence[str] = ("1",)
    d: int = 1
    box: str = "0:1"
    n: str = "any"
    arithmetic: str = "float64"
    group: int = 1024
    assumptions: tuple[str, ...] = OF_A_SUMFORMER


def term(
    own: str = "1", channel: int = 0, polynomial: list[Any] | None = None, product: int = 0, d: int = 1
) -> dict[str, Any]:
    return {"own": own, "channel": channel, "polynomial": polynomial or [[[0] * d, "1"]], "product": product}


def lebesgue(width: int) -> float:
    """Σ_a |ℓ_a(1/2)|."""
    s = width // 2 - 1
    return sum(abs(prod((0.5 + s - b) / (a - b) for b in range(width) if b != a)) for a in range(width))


def write(folder: Path, spec: Spec, epsilon: float = 1.0) -> Path:
    """The folder, with the bounds that its own check finds, and some slack."""
    f = make_target(spec.source, n=spec.n, d=spec.d, box=spec.box)
    reductions = [to_source(r) for r in reductions_of(f.countless)]
    network = MeshSumformer(
        expression=to_source(f.countless),
        d=spec.d,
        centre=[str(c) for c in f.box.centre],
        radius=[str(r) for r in f.box.radius],
        arithmetic=spec.arithmetic,
        group=spec.group,
        channels=[{"factor": c} for c in spec.channels],
        kernels=[
            {
                "expression": k.expression,
                "coordinates": list(k.coordinates),
                "intervals": list(k.intervals),
                "width": k.width,
                "sums": k.sums,
            }
            for k in spec.kernels
        ],
        products=[{"kernels": list(p)} for p in spec.products],
        reductions=[{"reduction": r, "components": c} for r, c in zip(reductions, spec.terms, strict=True)],
    )
    with torch.no_grad():
        for parameter, kernel in zip(network.samples, spec.kernels, strict=True):
            parameter.copy_(torch.from_numpy(_samples(kernel, f.box.radius)))
    network.save_pretrained(folder)
    certificate = Certificate(
        target=f.source,
        d=spec.d,
        box=str(f.box),
        tokens=str(f.tokens),
        arithmetic=spec.arithmetic,
        route="mesh",
        epsilon=4e9,
        latent_dimension=network.latent_dimension,
        terms=tuple(ErrorTerm(name, kind, 1e9) for name, kind in zip(NAMES, KINDS, strict=True)),
        total=3e9,
        assumptions=spec.assumptions,
        constants={"kernels": [_constants(kernel, f.box.radius) for kernel in spec.kernels]},
    )
    (folder / "certificate.json").write_text(certificate.to_json())
    found = check(sign(folder))
    data = json.loads((folder / "certificate.json").read_text())
    bounds = [slack * bound for slack, (_, bound) in zip((1.05, 1.05, 2.0), found.terms, strict=True)]
    data["terms"] = [
        {"name": name, "kind": kind, "bound": bound} for name, kind, bound in zip(NAMES, KINDS, bounds, strict=True)
    ]
    data |= {"total": sum(bounds), "epsilon": max(epsilon, sum(bounds))}
    (folder / "certificate.json").write_text(json.dumps(data))
    return sign(folder)


def _spacings(kernel: MeshKernelSpec, radius: Sequence[Fraction]) -> list[Fraction]:
    return [2 * radius[c] / m for c, m in zip(kernel.coordinates, kernel.intervals, strict=True)]


def _samples(kernel: MeshKernelSpec, radius: Sequence[Fraction]) -> Any:
    nodes = [m + kernel.width - 1 for m in kernel.intervals]
    axes = [
        np.array([float(h * e) for e in range(1 - G, G)]) for h, G in zip(_spacings(kernel, radius), nodes, strict=True)
    ]
    return np.ascontiguousarray(kernel.k(*np.meshgrid(*axes, indexing="ij")))


def _constants(kernel: MeshKernelSpec, radius: Sequence[Fraction]) -> dict[str, Any]:
    h, w = [float(s) for s in _spacings(kernel, radius)], kernel.width
    k, factor, linear = len(h), lebesgue(w), bool(kernel.slants)
    maxima = [] if linear else [_maximum(kernel, h, i) * 4 / 3 for i in range(k)]
    E = [
        m * prod(((2 * j + 1) / 2) ** 2 for j in range(w // 2)) * (step / reach) ** w
        for m, step, reach in zip(maxima, h, kernel.reaches, strict=not linear)
    ]
    slopes = [slope for slope, _ in kernel.slants] or [m / r for m, r in zip(maxima, kernel.reaches, strict=True)]
    logs = [log for _, log in kernel.slants if log is not None]
    samples = _samples(kernel, radius)
    inside = tuple(slice(w - 2, 2 * m + w - 1) for m in kernel.intervals)
    places = sum(2 * float(radius[c]) * 8 * 2.0**-53 * s for c, s in zip(kernel.coordinates, slopes, strict=True))
    ends = float(samples[inside].min()), float(samples[inside].max())
    exact = 16 / 27 * sum(s * step for s, step in zip(slopes, h, strict=True))
    share = prod(1 + 8 / 27 * (np.exp(2 * s * step) - 1) for s, step in zip(logs, h, strict=True)) if logs else None
    return {
        "expression": kernel.expression,
        "width": w,
        "intervals": list(kernel.intervals),
        "sums": kernel.sums,
        "strips": [
            {"coordinate": c, "reach": reach, "maximum": m}
            for c, reach, m in zip(kernel.coordinates, kernel.reaches, maxima, strict=not linear)
        ],
        "slants": [
            {"coordinate": c, "slope": slope, "log_slope": log}
            for c, (slope, log) in zip(kernel.coordinates, kernel.slants, strict=linear)
        ],
        "range": [ends[0] - 1e-3 * abs(ends[0]), ends[1] + 1e-3 * abs(ends[1])],
        "remainder": exact if linear else sum(factor**v * E[v % k] for v in range(2 * k)),
        "dropped": factor ** (2 * k) * 8 * 2.0**-53 * float(np.abs(samples).max()) + places,
        "relative": None if share is None else share - 1 + 1e-12,
    }


def _maximum(kernel: MeshKernelSpec, h: Sequence[float], which: int) -> float:
    """max |k| on a grid of the strip, which it meets at the real axis and at its edge."""
    worst, count = 0.0, 4001 if len(h) == 1 else 61 if len(h) == 2 else 25
    ends = [step * (m + kernel.width - 2) for step, m in zip(h, kernel.intervals, strict=True)]
    for share in np.linspace(0, 1, 9):
        axes = [np.linspace(-end, end, count).astype(complex) for end in ends]
        reach = kernel.reaches[which]
        axes[which] = np.linspace(-ends[which] - reach, ends[which] + reach, count) + 1j * share * reach
        worst = max(worst, float(np.abs(kernel.k(*np.meshgrid(*axes, indexing="ij"))).max()))
    return worst


def sigmoid(v: Complex) -> Complex:
    right = np.real(v) > 0
    power = np.exp(np.where(right, -v, v))
    return np.where(right, 1 / (1 + power), power / (1 + power))
