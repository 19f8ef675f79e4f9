"""Relative errors by target, the most accurate construction first: constructed, trained from random, and trained on."""

from __future__ import annotations

from pathlib import Path

from sumformer.experiments.report.figure import new_figure
from sumformer.experiments.reproduce.constructed import LARGE, ONWARD, SMALL
from sumformer.experiments.reproduce.outcome import Outcome


def draw(outcome: Outcome, path: Path) -> None:
    rows = sorted(outcome.data["rows"], key=lambda row: -row["constructed"])
    figure = new_figure(9, 0.32 * len(rows) + 1.8)
    axes = figure.add_subplot()
    for key, marker, colour, shift in (
        (SMALL, "o", "tab:orange", 0.12),
        (LARGE, "^", "tab:red", -0.12),
        ("constructed", "s", "tab:blue", 0.0),
        (ONWARD, "D", "tab:green", 0.0),
    ):
        shown = [(place + shift, row) for place, row in enumerate(rows) if key in row]
        errors = [max(row[key], 1e-17) for _, row in shown]
        axes.plot(errors, [y for y, _ in shown], marker, color=colour, label=key, alpha=0.85, markersize=5)
        for y, row in shown:
            if f"{key}: least" in row:
                axes.plot([row[f"{key}: least"], row[f"{key}: most"]], [y, y], color=colour, linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [_label(row) for row in rows], fontsize=8)
    axes.set_xlabel("relative L² error on a sample none has seen (lines: least to most over seeds)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="best")
    config = outcome.config
    axes.set_title(
        f"n = {config['n']}, d = {config['d']}, ε = {config['epsilon']:g}, {config['epochs']} epochs", fontsize=9
    )
    figure.savefig(path, dpi=140)


def _label(row: dict[str, float | str]) -> str:
    size = f"{row['parameters']} coefficients" if row["parameters"] else "exact"
    return f"{row['target']} ({size})"
