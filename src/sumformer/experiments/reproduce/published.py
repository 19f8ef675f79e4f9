"""The published figures of the Sumformer paper, digitised to about ±3 %."""

from __future__ import annotations

import csv
from importlib.resources import files


def figure_1() -> dict[str, list[float]]:
    """Columns by name: `epoch`, and a relative error per kind of target and model."""
    rows = _rows("figure_1.csv")
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


def figure_2() -> dict[tuple[int, int], float]:
    """(d', d) → the best relative validation error."""
    return {
        (int(row["latent"]), int(name[1:])): float(value)
        for row in _rows("figure_2.csv")
        for name, value in row.items()
        if name != "latent"
    }


def _rows(name: str) -> list[dict[str, str]]:
    text = (files(__package__) / "published" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
