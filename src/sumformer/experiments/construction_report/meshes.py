"""m ↦ the proved error of interpolating a kernel on a mesh of m intervals (`mesh_choice.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from sumformer.experiments.report.drawing import BLUE, Picture, chosen, decades, errors, picture
from sumformer.experiments.report.figure import new_figure
from sumformer.experiments.report.numbers import rounded_up
from sumformer.theorems.alberti_2023.mesh_choice import Choice, Slant, Strip
from sumformer.theorems.constructed import Construction

MOST_PICTURES = 6
SHARES = (0.25, 0.35, 0.5, 0.71, 1.0, 1.41, 2.0, 2.83, 4.0)


@dataclass(frozen=True)
class MeshCurve:
    """Kernels with one curve: intervals of the first coordinate, the others in proportion → the proved remainder."""

    expressions: tuple[str, ...]
    width: int
    intervals: tuple[int, ...]
    remainders: tuple[float, ...]
    chosen: tuple[int, float]


def run(construction: Construction) -> list[MeshCurve]:
    """A curve per distinct kernel, from the constants of the certificate."""
    radii = [float(r) for r in construction.target.box.radius]
    curves: dict[tuple[object, ...], MeshCurve] = {}
    for kernel in construction.certificate.constants["kernels"]:
        width, m = kernel["width"], kernel["intervals"]
        strips = tuple(Strip(s["reach"] / radii[s["coordinate"]], s["maximum"]) for s in kernel["strips"])
        slants = tuple(Slant(s["slope"] * radii[s["coordinate"]], inf) for s in kernel["slants"])
        key = (width, *m, strips, slants)
        before = curves[key].expressions if key in curves else ()
        trials = sorted({max(1, round(share * m[0])) for share in SHARES})
        scaled = [tuple(max(1, round(intervals * trial / m[0])) for intervals in m) for trial in trials]
        values = tuple(Choice(width, intervals, strips, slants).remainder for intervals in scaled)
        chosen = (m[0], float(kernel["remainder"]))
        curves[key] = MeshCurve((*before, kernel["expression"]), width, tuple(trials), values, chosen)
    return list(curves.values())[:MOST_PICTURES]


def plot(curves: list[MeshCurve]) -> list[Picture]:
    """One picture per curve."""
    return [_draw(curve) for curve in curves]


def _draw(curve: MeshCurve) -> Picture:
    figure = new_figure(4.6, 3.3)
    axes = figure.subplots()
    label = f"{curve.width} nodes for each token and coordinate (proved)"
    axes.plot(curve.intervals, curve.remainders, "o-", color=BLUE, markersize=3, linewidth=1.1, label=label)
    m, remainder = curve.chosen
    chosen(axes, m, remainder, f"{m} intervals")
    axes.set_xscale("log")
    decades(axes.xaxis)
    errors(axes, "intervals of the mesh in the kernel's first coordinate", "sup error of the kernel")
    name = ", ".join(curve.expressions)
    alt = f"Error against the number of intervals for {name}: {m} are chosen, with {rounded_up(remainder)} proved."
    return picture(figure, alt, name)
