"""report.html and comparison.json: error, training time, time and memory against n, and what follows."""

from __future__ import annotations

from html import escape
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from sumformer.experiments.comparison.pictures import against_latent, against_n, errors, errors_against_n
from sumformer.experiments.report import REPORT_FILE
from sumformer.experiments.report.drawing import look
from sumformer.experiments.report.figure import require_matplotlib
from sumformer.experiments.report.markup import document, gallery, paragraph, section, table
from sumformer.experiments.report.numbers import count, duration, nearest
from sumformer.learn.files import write_bytes, write_json

DATA_FILE = "comparison.json"


def write_rows(result: dict[str, Any], folder: Path) -> None:
    """The rows so far, as comparison.json."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / DATA_FILE, result)


def write_comparison(result: dict[str, Any], folder: Path, data: str) -> Path:
    """Write both files into `folder`; the page is returned."""
    require_matplotlib()
    write_rows(result, folder)
    with look():
        body = [*_header(result, data), _table(result), _pictures(result)]
    file = folder / REPORT_FILE
    write_bytes(file, document(f"comparison: {data}", body).encode("utf-8"))
    return file


def verdict(result: dict[str, Any]) -> str:
    """The recommendation in one sentence."""
    r = result["recommendation"]
    latent = f" with latent dimension {r['latent']}" if r["latent"] is not None else ""
    tied = [name for name in r["tied"] if name != r["architecture"]]
    others = f"; not told apart from it: {', '.join(tied)}" if tied else ""
    use = "Use" if result["status"] == "finished" else f"Of the {len(result['rows'])} finished, use"
    return f"{use} {r['architecture']}{latent} and {r['hidden']} hidden units{others}."


def _header(result: dict[str, Any], data: str) -> list[str]:
    config = result["config"]
    budget = f"at most {count(config['parameters'])} parameters each, {config['seeds']} seeds"
    parts = [
        "<h1>Which architecture, with what latent dimension?</h1>",
        f'<p class="formula">{escape(data)}</p>',
        paragraph(verdict(result), "claim"),
        paragraph(f"{result['data']}; {result['task']}; {budget}."),
        paragraph(f"The rule: {result['recommendation']['rule']}", "note"),
    ]
    return parts + [paragraph(f"Left out: {name}, {why}", "note") for name, why in result["left_out"].items()]


def _table(result: dict[str, Any]) -> str:
    head = ("architecture", "d' or k", "hidden", "parameters", "validation error", "test error", "training", "per set")
    rows = [
        [
            escape(row["name"] + ("" if row["equivariant"] else " *")),
            "–" if row["latent"] is None else str(row["latent"]),
            str(row["hidden"]),
            count(row["parameters"]),
            spread(row["validation"]),
            spread(row["test"]),
            duration(row["train_seconds"]),
            duration(row["milliseconds_per_set"] / 1e3),
        ]
        for row in sorted(result["rows"], key=lambda row: fmean(row["validation"]))
    ]
    marked = not all(row["equivariant"] for row in result["rows"])
    note = "Mean ± standard deviation over seeds." + (" * depends on the order of tokens." if marked else "")
    return section("table", "Errors and times", table(head, rows, range(1, 8)), paragraph(note, "note"))


def _pictures(result: dict[str, Any]) -> str:
    rows = result["rows"]
    shown = [errors(rows), against_latent(rows)]
    if any(len(row["by_length"]) > 1 for row in rows):
        shown.append(errors_against_n(rows))
    shown += [
        against_n(rows, "step_seconds", "seconds of a training step, per set"),
        against_n(rows, "predict_seconds", "seconds of a prediction, per set"),
        against_n(rows, "peak_bytes", "peak bytes of predicting 8 sets"),
    ]
    note = "Costs on one thread. Bytes are those of tensors alive at once; what a fused kernel uses inside is not seen."
    return section("pictures", "Pictures", gallery(shown), paragraph(note, "note"))


def spread(values: list[float]) -> str:
    """0.0312 ± 0.002."""
    return nearest(fmean(values)) + (f" ± {nearest(stdev(values), 2)}" if len(values) > 1 else "")
