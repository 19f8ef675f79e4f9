"""d' ↦ the proved modulus when tokens are counted in more cells, or in fewer (`mixture_modulus.py`)."""

from __future__ import annotations

from dataclasses import dataclass

from sumformer.experiments.report.drawing import BLUE, Picture, chosen, decades, errors, picture
from sumformer.experiments.report.figure import new_figure
from sumformer.experiments.report.numbers import rounded_up
from sumformer.targets import Target
from sumformer.targets.homogeneity import cancelled
from sumformer.targets.mixture_modulus import mixture_modulus
from sumformer.theorems.alberti_2023.cell_tables import CellTables
from sumformer.theorems.constructed import Construction

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
    tables = CellTables.of(cancelled(f.expression))
    points: dict[int, float] = {}
    for share in SHARES:
        scaled = [max(1, round(share * k)) for k in counts]
        radii = [float(r) / k for r, k in zip(f.box.radius, scaled, strict=True)]
        points[tables.cells(scaled)] = mixture_modulus(f, radii)
    modulus = next((t.bound for t in construction.certificate.terms if t.name.startswith("modulus")), 0.0)
    return CellCurve(tuple(points), tuple(points.values()), (construction.certificate.latent_dimension, modulus))


def plot(curve: CellCurve) -> Picture:
    figure = new_figure(4.6, 3.3)
    axes = figure.subplots()
    axes.plot(curve.cells, curve.moduli, "o-", color=BLUE, markersize=3, linewidth=1.1, label="modulus (proved)")
    cells, modulus = curve.chosen
    chosen(axes, cells, modulus, f"{cells} cells")
    axes.set_xscale("log")
    decades(axes.xaxis)
    errors(axes, "cells that Σ counts, d'", "sup error")
    return picture(figure, f"Error against the number of cells: {cells} are chosen, with {rounded_up(modulus)} proved.")
