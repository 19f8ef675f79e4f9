"""Errors of all seeds, error against latent dimension and length, cost against n."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from sumformer.experiments.report.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    Picture,
    decades,
    grid,
    picture,
)
from sumformer.experiments.report.figure import new_figure
from sumformer.experiments.report.numbers import nearest

COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, GREY, "#117733")
Rows = Sequence[dict[str, Any]]


def errors(rows: Rows) -> Picture:
    """A dot for each seed, a bar at the mean."""
    ordered = sorted(rows, key=lambda row: fmean(row["test"]))
    figure = new_figure(5.4, 0.42 * len(rows) + 0.9)
    axes = figure.subplots()
    for place, row in enumerate(ordered):
        axes.plot(row["test"], [place] * len(row["test"]), "o", color=BLUE, markersize=4)
        axes.plot([fmean(row["test"])], [place], "|", color=ORANGE, markersize=14, markeredgewidth=2)
    axes.set_yticks(range(len(ordered)), [row["name"] for row in ordered])
    axes.set_ylim(len(ordered) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel("test error, one dot for each seed, | the mean")
    grid(axes)
    words = "; ".join(f"{row['name']} {nearest(fmean(row['test']))}" for row in ordered)
    return picture(figure, f"Mean test errors: {words}.", "error")


def against_latent(rows: Rows) -> Picture:
    """Validation error of the sweep."""
    lines = {row["name"]: [(s["latent"], s["validation"]) for s in row["sweep"]] for row in rows if row["sweep"]}
    return _lines(rows, lines, "latent dimension d' (or k)", "validation error, seed 0", "error against d'")


def errors_against_n(rows: Rows) -> Picture:
    """Test error of groups of sets by their number of tokens."""
    lines = {row["name"]: [(g["n"], g["error"]) for g in row["by_length"]] for row in rows}
    return _lines(rows, lines, "tokens in a set (mean of a quarter of the sets)", "test error", "error against n")


def against_n(rows: Rows, key: str, label: str) -> Picture:
    """One of the costs."""
    lines = {row["name"]: [(c["n"], c[key]) for c in row["costs"]] for row in rows}
    return _lines(rows, lines, "tokens n", label, label)


def _lines(rows: Rows, lines: dict[str, list[tuple[float, float]]], x: str, y: str, caption: str) -> Picture:
    figure = new_figure(4.6, 3.4)
    axes = figure.subplots()
    colours = {row["name"]: COLOURS[i % len(COLOURS)] for i, row in enumerate(rows)}
    for name, points in lines.items():
        axes.plot(*zip(*points, strict=True), "o-", color=colours[name], markersize=3, linewidth=1.2, label=name)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda v, _: f"{v:g}")
    if all(value > 0 for points in lines.values() for _, value in points) and lines:
        axes.set_yscale("log")
        decades(axes.yaxis)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if lines:
        axes.legend(frameon=False, fontsize=7)
    grid(axes)
    words = "; ".join(f"{name}: {nearest(points[-1][1])} at {points[-1][0]:g}" for name, points in lines.items())
    return picture(figure, f"{y} against {x}. {words}.", caption)
