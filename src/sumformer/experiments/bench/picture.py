"""Seconds against n, log-log, one panel per mechanism; where ours overtakes the peer is marked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sumformer.experiments.report.figure import new_figure


def crossover(rows: list[dict[str, Any]], ours: str, peer: str) -> int | None:
    """The least n from which ours is ahead of the peer at every n measured for both; None if never."""
    mine = {r["n"]: r["step_seconds"] for r in rows if r["name"] == ours}
    other = {r["n"]: r["step_seconds"] for r in rows if r["name"] == peer}
    ahead: int | None = None
    for n in sorted(mine.keys() & other.keys(), reverse=True):
        if mine[n] >= other[n]:
            break
        ahead = n
    return ahead


def draw(result: dict[str, Any], path: Path) -> Path:
    """Write the picture."""
    rows = result["rows"]
    mechanisms = list(dict.fromkeys(r["mechanism"] for r in rows if r["ours"]))
    figure = new_figure(4.2 * len(mechanisms), 4.4)
    for i, mechanism in enumerate(mechanisms):
        axes = figure.add_subplot(1, len(mechanisms), i + 1)
        ours = next(r["name"] for r in rows if r["mechanism"] == mechanism and r["ours"])
        names = [ours, *dict.fromkeys(r["peer"] for r in result["ratios"] if r["ours"] == ours)]
        for name in names:
            mine = [r for r in rows if r["name"] == name]
            style = {"marker": "o", "linewidth": 2} if name == ours else {"marker": ".", "linestyle": "--"}
            axes.loglog([r["n"] for r in mine], [r["step_seconds"] for r in mine], label=name, **style)
        starts = {peer: crossover(rows, ours, peer) for peer in names[1:]}
        for start in {n for n in starts.values() if n is not None}:
            axes.axvline(start, color="grey", linestyle=":", linewidth=1)
        notes = [f"ahead of {p} from n = {n:,}" if n else f"not ahead of {p}" for p, n in starts.items()]
        axes.set_title(f"{mechanism}\n" + "\n".join(notes), fontsize=9)
        axes.set_xlabel("tokens n")
        axes.set_ylabel("seconds, forward + backward" if i == 0 else "")
        axes.grid(alpha=0.3, which="both")
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=130)
    return path
