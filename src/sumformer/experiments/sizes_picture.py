"""Attention layers and parameters against 1/ε, log-log, one line for each construction; hollow where only counted.

Where m lines coincide each has every m-th dash, and their points lie in each other as rings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from sumformer.experiments.report.drawing import decades
from sumformer.experiments.report.figure import new_figure

PANELS = (("attention_layers", "attention layers"), ("parameters", "parameters"))
LEAST = 0.5  # where 0 is drawn
DASH, POINT, RING = 5.0, 5.5, 2.5

Place = tuple[float, float]


def plot(rows: Sequence[Mapping[str, Any]], title: str, path: str | Path | None = None) -> Any:
    """A matplotlib figure of the rows of `sumformer sizes`; written to `path` where one is given."""
    figure = new_figure(10.0, 5.2)
    figure.suptitle(title)
    drawn = [row for row in rows if row["how"] != "refused"]
    names = list(dict.fromkeys(row["name"] for row in drawn))
    for i, (key, label) in enumerate(PANELS):
        axes = figure.add_subplot(1, len(PANELS), i + 1)
        _draw(
            axes, {name: [row for row in drawn if row["name"] == name and row[key] is not None] for name in names}, key
        )
        axes.set_xscale("log")
        axes.set_yscale("log")
        decades(axes.xaxis)
        decades(axes.yaxis)
        axes.set_xlabel("1/ε")
        axes.set_ylabel(f"{label} (0 is drawn at {LEAST:g})")
        axes.grid(alpha=0.3, which="both")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize="small")
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure


def _draw(axes: Any, lines: Mapping[str, Sequence[Mapping[str, Any]]], key: str) -> None:
    places = {name: [_place(row, key) for row in mine] for name, mine in lines.items()}
    for j, (name, mine) in enumerate(lines.items()):
        colour = f"C{j}"
        axes.plot([], [], color=colour, label=name)
        for start, end in pairwise(places[name]):
            k, m = _turn(name, {other: list(pairwise(found)) for other, found in places.items()}, (start, end))
            style = "-" if m == 1 else (k * DASH, (DASH, (m - 1) * DASH))
            axes.plot([start[0], end[0]], [start[1], end[1]], color=colour, linestyle=style)
        for row, (x, y) in zip(mine, places[name], strict=True):
            k, m = _turn(name, places, (x, y))
            face = colour if row["how"] == "built" else "white"
            axes.scatter(
                [x], [y], s=(POINT + RING * (m - 1 - k)) ** 2, edgecolors=colour, facecolors=face, zorder=3 + k
            )


def _place(row: Mapping[str, Any], key: str) -> Place:
    return 1 / row["epsilon"], max(float(row[key]), LEAST)


def _turn(name: str, found: Mapping[str, Sequence[Any]], what: Any) -> tuple[int, int]:
    """Which of those that have it `name` is, and how many there are."""
    sharing = [other for other, all_of_it in found.items() if what in all_of_it]
    return sharing.index(name), len(sharing)
