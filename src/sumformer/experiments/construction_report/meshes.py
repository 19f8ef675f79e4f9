"""m ↦ Σ_v Λ^v M_c P_w (2·radius/(m δ_c))^w: the proved error of interpolating a kernel on a mesh of m intervals."""

from __future__ import annotations

from dataclasses import dataclass

from sumformer.algebra.equidistant import lebesgue, node_polynomial
from sumformer.experiments.report.drawing import BLUE, ORANGE, Picture, decades, grid, picture
from sumformer.experiments.report.figure import new_figure
from sumformer.experiments.report.numbers import rounded_up
from sumformer.theorems.construction import Construction

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
        width, m, strips = kernel["width"], kernel["intervals"], kernel["strips"]
        reaches = [s["reach"] / radii[s["coordinate"]] for s in strips]
        key = (width, *m, *reaches, *(s["maximum"] for s in strips))
        before = curves[key].expressions if key in curves else ()
        trials = sorted({max(1, round(share * m[0])) for share in SHARES})
        values = []
        for trial in trials:
            total = 0.0
            for v in range(2 * len(strips)):
                c = v % len(strips)
                ratio = 2 / (m[c] * trial / m[0] * reaches[c])
                total += lebesgue(width) ** v * strips[c]["maximum"] * float(node_polynomial(width)) * ratio**width
            values.append(total)
        chosen = (m[0], float(kernel["remainder"]))
        curves[key] = MeshCurve((*before, kernel["expression"]), width, tuple(trials), tuple(values), chosen)
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
    axes.plot([m], [remainder], "o", markersize=9, markerfacecolor="none", markeredgewidth=2, color=ORANGE)
    axes.annotate(
        f"chosen: {m} intervals,\nproved {rounded_up(remainder)}",
        (m, remainder),
        (10, 12),
        textcoords="offset points",
        fontsize=8.5,
        color="#a84900",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("intervals of the mesh in the kernel's first coordinate")
    axes.set_ylabel("sup error of the kernel")
    axes.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=1)
    decades(axes.yaxis)
    grid(axes)
    name = ", ".join(curve.expressions)
    alt = f"Error against the number of intervals for {name}: {m} are chosen, with {rounded_up(remainder)} proved."
    return picture(figure, alt, name)
