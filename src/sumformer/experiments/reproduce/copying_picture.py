"""Accuracy by pattern and number of layers, against the share of connected pairs, and FIXED's against the width."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sumformer.experiments.report.figure import new_figure
from sumformer.experiments.reproduce.outcome import Outcome


def draw(outcome: Outcome, path: Path) -> None:
    """Where only a least share was kept (`at_least`), that is drawn and said."""
    every, narrow = outcome.data["rows"], outcome.config["d_model"]
    rows = [r for r in every if r.get("d_model", narrow) == narrow]
    depths = sorted({r["layers"] for r in rows})
    figure = new_figure(16, 4.6)
    left, right, wide = (figure.add_subplot(1, 3, place) for place in (1, 2, 3))
    common = [r["pattern"] for r in rows if r["layers"] == depths[0]]
    for pattern in common:
        mine = [r for r in rows if r["pattern"] == pattern]
        least = "" if all(r["accuracy"] is not None for r in mine) else f": ≥ {_share(mine[-1])}"
        left.plot([r["layers"] for r in mine], [_share(r) for r in mine], marker="o", label=pattern + least)
    left.set_xticks(depths)
    left.set_xlabel("layers")
    left.set_ylabel("share of symbols right")
    left.legend(fontsize=7)
    last = [r for r in rows if r["layers"] == depths[-1] and r["pattern"] != "dense"]
    for kind, marker in (("strided", "o"), ("fixed", "s"), ("random", "x"), ("star", "*")):
        some = [r for r in last if r["pattern"].startswith(kind) and r["pattern"].split()[-1] != "multihead"]
        some = [r for r in some if not r["pattern"].endswith("sequential")]
        some.sort(key=lambda r: float(r["connected"]))
        if some:
            right.plot([r["connected"] for r in some], [_share(r) for r in some], marker=marker, label=kind)
    right.set_xlabel(f"share of pairs connected, {depths[-1]} layers")
    right.set_xscale("log")
    right.legend(fontsize=8)
    for pattern in (name for name in common if name.startswith("fixed")):
        mine = [r for r in every if r["pattern"] == pattern and r["layers"] == depths[-1]]
        mine.sort(key=lambda r: int(r.get("d_model", narrow)))
        wide.plot([r.get("d_model", narrow) for r in mine], [_share(r) for r in mine], marker="s", label=pattern)
    wide.set_xlabel(f"width of the model, {depths[-1]} layers")
    wide.set_xscale("log", base=2)
    wide.legend(fontsize=8)
    for axes in (left, right, wide):
        axes.set_ylim(-0.02, 1.04)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=140)


def _share(row: dict[str, Any]) -> float:
    return float(row["at_least"] if row["accuracy"] is None else row["accuracy"])
