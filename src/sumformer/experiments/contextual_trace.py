"""The staircase of the proof: id of every token against the attention layers, each shift a step above all before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sumformer.experiments.report.figure import new_figure
from sumformer.theorems.yun_2020_deep.trace import Trace

DASH = 5.0


def plot(found: Trace, path: str | Path | None = None) -> Any:
    """A matplotlib figure; written to `path` where one is given."""
    figure = new_figure(8.0, 4.5)
    axes = figure.add_subplot()
    lines = [[float(row[j]) for row in found.ids] for j in range(found.grid.n)]
    for j, line in enumerate(lines):
        label = f"token {j + 1}: ({', '.join(str(v) for v in found.tokens[j])})"
        k, m = lines[:j].count(line), lines.count(line)  # tokens of one cell share their dashes
        style = "-" if m == 1 else (k * DASH, (DASH, (m - 1) * DASH))
        axes.step(range(len(found.ids)), line, where="mid", label=label, linestyle=style)
    axes.locator_params(axis="x", integer=True)
    axes.set_yscale("symlog", linthresh=found.grid.Q)
    axes.set_xlabel("after so many attention layers")
    axes.set_ylabel("id, in units of δ")
    axes.set_title(f"n = {found.grid.n}, d = {found.grid.d}, δ = 1/{found.grid.q}")
    axes.legend(loc="upper left", fontsize="small")
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
