"""Relative errors by target: constructed, trained from random, constructed and trained on."""

from __future__ import annotations

from pathlib import Path

from sumformer.errors import MissingDependencyError
from sumformer.experiments.reproduce.outcome import Outcome


def draw(outcome: Outcome, path: Path) -> None:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError("matplotlib", "the picture of an experiment", "plots") from None
    rows = outcome.data["rows"]
    figure = Figure(figsize=(8.5, 0.4 * len(rows) + 1.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    places = range(len(rows))
    for key, marker in (("trained", "o"), ("constructed", "s"), ("constructed, trained on", "D")):
        axes.semilogx([max(r[key], 1e-16) for r in rows], list(places), marker, label=key, alpha=0.8)
    axes.set_yticks(list(places), [r["target"] for r in rows], fontsize=8)
    axes.set_xlabel("relative L² error on held-out tokens")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=140)
