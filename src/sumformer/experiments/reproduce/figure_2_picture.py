"""Three heat maps of log error over (d, d'): as published, plain, best."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sumformer.experiments.report.figure import new_figure, require_matplotlib
from sumformer.experiments.reproduce import published
from sumformer.experiments.reproduce.outcome import Outcome


def draw(outcome: Outcome, path: Path) -> None:
    require_matplotlib()
    from matplotlib.colors import LogNorm

    paper = [[k, d, error] for (k, d), error in published.figure_2().items()]
    panels = {"published": paper, **{name: outcome.data[name] for name in ("plain", "best")}}
    latents = sorted({cell[0] for cell in outcome.data["plain"]})
    dims = sorted({cell[1] for cell in outcome.data["plain"]})
    figure = new_figure(4.3 * len(panels), 0.45 * len(latents) + 1.6)
    image: Any = None
    for i, (name, cells) in enumerate(panels.items()):
        axes = figure.add_subplot(1, len(panels), i + 1)
        values = np.full((len(latents), len(dims)), np.nan)
        for k, d, error, *_ in cells:
            if k in latents and d in dims:
                values[latents.index(k), dims.index(d)] = error
        image = axes.imshow(values, origin="lower", norm=LogNorm(0.002, 0.7), cmap="viridis_r", aspect="auto")
        for (row, column), value in np.ndenumerate(values):
            colour = "white" if value > 0.08 else "black"
            axes.text(column, row, f"{value:.2g}", ha="center", va="center", fontsize=6.5, color=colour)
        axes.set_xticks(range(len(dims)), [str(d) for d in dims])
        axes.set_yticks(range(len(latents)), [str(k) for k in latents])
        axes.set_title(name)
        axes.set_xlabel("d, coordinates per token")
        axes.set_ylabel("d', latent dimension" if i == 0 else "")
    figure.colorbar(image, ax=figure.axes, label="relative L² error")
    figure.savefig(path, dpi=140)
