"""Held-out loss by mixer, one bar each, worst on top."""

from __future__ import annotations

from pathlib import Path

from sumformer.experiments.report.figure import new_figure
from sumformer.experiments.reproduce.outcome import Outcome


def draw(outcome: Outcome, path: Path) -> None:
    rows = sorted(outcome.data["rows"], key=lambda r: float(r["loss"]))
    figure = new_figure(8, 0.45 * len(rows) + 1.2)
    axes = figure.add_subplot()
    names = [r["mixer"] if outcome.config["seeds"] == 1 else f"{r['mixer']}, seed {r['seed']}" for r in rows]
    axes.barh(names, [r["loss"] for r in rows], color=["tab:orange" if "," in n else "tab:blue" for n in names])
    for i, r in enumerate(rows):
        axes.text(r["loss"], i, f" {r['loss']:.3f}, {100 * r['accuracy']:.1f} % right", va="center", fontsize=8)
    axes.set_xlim(0, 1.35 * max(float(r["loss"]) for r in rows))
    axes.set_xlabel("held-out cross-entropy per hidden byte")
    figure.savefig(path, dpi=140)
