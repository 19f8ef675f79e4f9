"""Attention layers and parameters against 1/ε, log-log, one line for each construction; hollow where only counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sumformer.experiments.report.figure import new_figure

PANELS = (("attention_layers", "attention layers"), ("parameters", "parameters"))


def plot(rows: Sequence[Mapping[str, Any]], title: str, path: str | Path | None = None) -> Any:
    """A matplotlib figure of the rows of `sumformer sizes`; written to `path` where one is given."""
    figure = new_figure(10.0, 4.5)
    figure.suptitle(title)
    names = list(dict.fromkeys(row["name"] for row in rows if row["how"] != "refused"))
    for i, (key, label) in enumerate(PANELS):
        axes = figure.add_subplot(1, len(PANELS), i + 1)
        for j, name in enumerate(names):
            mine = [row for row in rows if row["name"] == name and row["how"] != "refused" and row[key] is not None]
            places = [(1 / row["epsilon"], max(float(row[key]), 0.5), row["how"] == "built") for row in mine]
            axes.loglog([x for x, _, _ in places], [y for _, y, _ in places], color=f"C{j}", label=name)
            for built in (True, False):
                some = [(x, y) for x, y, made in places if made == built]
                face = f"C{j}" if built else "none"
                axes.scatter([x for x, _ in some], [y for _, y in some], edgecolors=f"C{j}", facecolors=face, zorder=3)
        axes.set_xlabel("1/ε")
        axes.set_ylabel(label + (" (0 is drawn at 0.5)" if key == "attention_layers" else ""))
        axes.grid(alpha=0.3, which="both")
    figure.axes[0].legend(fontsize="small")
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure
