"""d' ↦ the proved modulus when tokens are counted in more cells, or in fewer (`measure_slopes.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from sumformer.experiments.report.drawing import BLUE, ORANGE, Picture, decades, grid, picture
from sumformer.experiments.report.figure import new_figure
from sumformer.experiments.report.numbers import rounded_up
from sumformer.targets import Target
from sumformer.targets.coordinatewise import coordinatewise, families
from sumformer.targets.measure_modulus import measure_modulus
from sumformer.theorems.construction import Construction

SHARES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the cells along each coordinate that moves f


@dataclass(frozen=True)
class CellCurve:
    """Cells in all → modulus; `chosen` is the network's."""

    cells: tuple[int, ...]
    moduli: tuple[float, ...]
    chosen: tuple[int, float]


def run(construction: Construction) -> CellCurve:
    """The cells of the certificate, all coordinates in proportion."""
    f, counts = construction.target, construction.certificate.constants["cells"]
    assert isinstance(f, Target)  # route cells takes no other
    tables = {family.seen for family in families(coordinatewise(f.countless))}
    points: dict[int, float] = {}
    for share in SHARES:
        scaled = [max(1, round(share * k)) for k in counts]
        radii = [float(r) / k for r, k in zip(f.box.radius, scaled, strict=True)]
        points[sum(prod(scaled[c] for c in some) for some in tables)] = measure_modulus(f, radii)
    modulus = next((t.bound for t in construction.certificate.terms if t.name.startswith("modulus")), 0.0)
    return CellCurve(tuple(points), tuple(points.values()), (construction.certificate.latent_dimension, modulus))


def plot(curve: CellCurve) -> Picture:
    figure = new_figure(4.6, 3.3)
    axes = figure.subplots()
    axes.plot(curve.cells, curve.moduli, "o-", color=BLUE, markersize=3, linewidth=1.1, label="modulus (proved)")
    cells, modulus = curve.chosen
    axes.plot([cells], [modulus], "o", markersize=9, markerfacecolor="none", markeredgewidth=2, color=ORANGE)
    axes.annotate(
        f"chosen: {cells} cells,\nproved {rounded_up(modulus)}",
        (cells, modulus),
        (10, 12),
        textcoords="offset points",
        fontsize=8.5,
        color="#a84900",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("cells that Σ counts, d'")
    axes.set_ylabel("sup error")
    axes.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    decades(axes.yaxis)
    grid(axes)
    return picture(figure, f"Error against the number of cells: {cells} are chosen, with {rounded_up(modulus)} proved.")
