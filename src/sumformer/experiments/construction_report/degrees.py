"""N ↦ ‖I_{N'}K − K̃_N‖_∞ for every kernel K: what cutting its interpolant to degree N drops; the chosen N is marked."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sumformer.algebra import chebyshev
from sumformer.algebra.rounding import FloatArray
from sumformer.errors import SumformerError
from sumformer.experiments.report.drawing import BLUE, GREY, Picture, chosen, errors, picture
from sumformer.experiments.report.figure import new_figure
from sumformer.experiments.report.numbers import nearest, rounded_up
from sumformer.targets import Environment, evaluate, parse
from sumformer.targets.torch_evaluation import TorchOperations
from sumformer.theorems.alberti_2023.interpolation import Interpolant, KernelStudy, Studies
from sumformer.theorems.constructed import Construction

SECONDS = 2.0
MOST_PICTURES = 6


@dataclass(frozen=True)
class Degrees:
    """One kernel (or several that differ in their coordinates' names only): degree → dropped, proved or estimated."""

    expressions: tuple[str, ...]
    degrees: tuple[int, ...]
    dropped: tuple[float, ...]
    chosen: tuple[int, float]
    remainder: tuple[int, float]
    proved: bool


def run(construction: Construction, seconds: float = SECONDS) -> list[Degrees]:
    """A curve per distinct kernel; after `seconds` the degrees left are left out, evenly."""
    constants = construction.certificate.constants["kernels"]
    dtype = str(construction.network.inside).removeprefix("torch.")
    studies = Studies(construction.target.box)
    groups: dict[tuple[int, int], tuple[KernelStudy, list[dict[str, Any]]]] = {}
    for kernel in constants:
        study = studies.of(parse(kernel["expression"], construction.target.d, free_y=True))
        groups.setdefault((id(study), kernel["degree"]), (study, []))[1].append(kernel)
    deadline = time.perf_counter() + seconds
    return [_curve(study, kernels, dtype, deadline) for study, kernels in list(groups.values())[:MOST_PICTURES]]


def _curve(study: KernelStudy, kernels: list[dict[str, Any]], dtype: str, deadline: float) -> Degrees:
    first = kernels[0]
    chosen, top = int(first["degree"]), int(first["interpolation_degree"])
    proved = study.box.d == 1
    values: dict[int, float] = {chosen: float(first["dropped"])} if proved else {}
    try:
        interpolant = study.interpolate(first["remainder"]) if proved else _unproved(study, top)
        for degree in _spread(interpolant.degree, chosen):
            if time.perf_counter() > deadline and len(values) > 1:
                break
            dropped = interpolant.truncate(degree, dtype).dropped if proved else interpolant.estimate(degree)
            values.setdefault(degree, dropped)
    except SumformerError:  # the certificate stands without its picture
        pass
    points = sorted((degree, value) for degree, value in values.items() if value > 0)
    return Degrees(
        expressions=tuple(k["expression"] for k in kernels),
        degrees=tuple(degree for degree, _ in points),
        dropped=tuple(value for _, value in points),
        chosen=(chosen, float(first["dropped"])),
        remainder=(top, float(first["remainder"])),
        proved=proved,
    )


def _spread(top: int, chosen: int) -> Iterable[int]:
    """0 … top, coarse first: whatever is cut off, the rest is spread evenly."""
    order = dict.fromkeys((0, top, chosen))
    step = 1 << max(top.bit_length() - 1, 0)
    while step:
        order |= dict.fromkeys(range(0, top + 1, step))
        step >>= 1
    return order


def _unproved(study: KernelStudy, degree: int) -> Interpolant:
    """I_N K in plain float64, for estimates."""
    values = _at_nodes(study, degree)
    return Interpolant(chebyshev.coefficients(values), 0.0, 0.0, ())


def _at_nodes(study: KernelStudy, degree: int) -> FloatArray:
    k = study.box.d
    t = torch.from_numpy(np.asarray(chebyshev.nodes(degree)))
    columns = [float(c) + float(r) * t for c, r in zip(study.box.centre, study.box.radius, strict=True)]
    token = torch.stack(torch.meshgrid(*columns, indexing="ij"), dim=-1)
    x = token.reshape(*token.shape[:-1], *(1,) * k, k)
    operations = TorchOperations(torch.float64, token.device)
    value = evaluate(study.kernel, operations, Environment(x=x, y=token))[..., 0]
    return np.asarray(value.expand((degree + 1,) * (2 * k)).numpy())


def plot(curves: list[Degrees]) -> list[Picture]:
    """One picture per curve."""
    return [_draw(curve) for curve in curves]


def _draw(curve: Degrees) -> Picture:
    figure = new_figure(4.6, 3.3)
    axes = figure.subplots()
    word = "proved" if curve.proved else "estimated, not proved"
    axes.plot(curve.degrees, curve.dropped, "o-", color=BLUE, markersize=3, linewidth=1.1, label=f"dropped ({word})")
    degree, dropped = curve.chosen
    chosen(axes, degree, dropped, f"degree {degree}")
    top, remainder = curve.remainder
    axes.axhline(remainder, color=GREY, linewidth=1, linestyle="--", label=f"remainder of I at degree {top} (proved)")
    axes.set_xlim(-0.03 * max(top, 1), max(top, 1) * 1.03)
    values = [*curve.dropped, dropped, remainder]
    axes.set_ylim(min(v for v in values if v > 0) / 4, max(values) * 6)
    axes.locator_params(axis="x", integer=True)
    errors(axes, "degree N kept in every coordinate", "sup error of the kernel")
    name = ", ".join(curve.expressions)
    ends = f"from {nearest(curve.dropped[0])} at degree {curve.degrees[0]}" if curve.degrees else "not recomputed"
    alt = f"Error against degree for {name}, {word}: {ends}; chosen degree {degree} with {rounded_up(dropped)} proved."
    return picture(figure, alt, name)
