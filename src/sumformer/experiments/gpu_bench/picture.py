"""Milliseconds against n, log-log: forward on the left, forward + backward on the right, the floor dotted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sumformer.experiments.gpu_bench.timing import time_of
from sumformer.experiments.report.figure import new_figure


def draw(result: dict[str, Any], path: Path) -> Path:
    """Write the picture."""
    figure = new_figure(11, 4.6)
    names = list(dict.fromkeys(row["name"] for row in result["rows"]))
    for i, part in enumerate(("forward", "step")):
        axes = figure.add_subplot(1, 2, i + 1)
        for name in names:
            rows = [r for r in result["rows"] if r["name"] == name and r[f"{part}_ms"] is not None]
            style = {"marker": "o"} if name.startswith("SumMixer") else {"marker": ".", "linestyle": "--"}
            axes.loglog([r["n"] for r in rows], [time_of(r, part) for r in rows], label=name, **style)
        floors = result["floors"]
        axes.loglog([f["n"] for f in floors], [time_of(f, part) for f in floors], "k:", label="floor: the products")
        axes.set_title("forward" if part == "forward" else "forward + backward")
        axes.set_xlabel("tokens n")
        axes.set_ylabel("milliseconds" if i == 0 else "")
        axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    figure.suptitle(f"one layer, d = {result['config']['d']}, {result['dtype']}, {result['machine']['device']}")
    figure.savefig(path, dpi=130)
    return path
