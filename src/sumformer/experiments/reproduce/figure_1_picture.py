"""Validation curves over the published ones, a panel per kind of target and training."""

from __future__ import annotations

from pathlib import Path

from sumformer.experiments.report.figure import new_figure
from sumformer.experiments.reproduce.figure_1 import published_curve
from sumformer.experiments.reproduce.outcome import Outcome

COLOURS = {"polynomial": "tab:blue", "mlp": "tab:orange"}


def draw(outcome: Outcome, path: Path) -> None:
    curves, epochs = outcome.data["curves"], outcome.data["epochs"]
    panels, kinds = (list(dict.fromkeys(c[key] for c in curves)) for key in ("panel", "kind"))
    figure = new_figure(5.2 * len(kinds), 3.4 * len(panels))
    for i, panel in enumerate(panels):
        for j, kind in enumerate(kinds):
            axes = figure.add_subplot(len(panels), len(kinds), i * len(kinds) + j + 1)
            for model, colour in COLOURS.items():
                axes.semilogy(*published_curve(kind, model), "k:" if model == "mlp" else "k--", linewidth=1.2)
                axes.lines[-1].set_label(f"published, {model}")
                some = [c for c in curves if (c["panel"], c["kind"], c["model"]) == (panel, kind, model)]
                for number, curve in enumerate(some):
                    label = f"{model} Sumformer, each target and seed" if number == 0 else None
                    axes.semilogy(epochs, curve["errors"], color=colour, alpha=0.55, linewidth=1.1, label=label)
            axes.set_title(f"{kind} targets, {panel}", fontsize=10)
            axes.set_xlabel("epoch" if i == len(panels) - 1 else "")
            axes.set_ylabel("relative L² error" if j == 0 else "")
            axes.grid(alpha=0.3, which="both")
            axes.legend(fontsize=7)
    figure.savefig(path, dpi=140)
