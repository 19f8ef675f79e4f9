"""report.html = error · learning curve · predictions · worst sets · settings, in one file that loads nothing."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from sumformer.experiments.fit_report import pictures
from sumformer.experiments.report import REPORT_FILE
from sumformer.experiments.report.drawing import look
from sumformer.experiments.report.figure import require_matplotlib
from sumformer.experiments.report.markup import (
    code,
    definitions,
    details,
    document,
    gallery,
    paragraph,
    section,
    table,
)
from sumformer.experiments.report.numbers import count, duration, nearest
from sumformer.learn.evaluation import Examination
from sumformer.learn.files import write_bytes
from sumformer.learn.fitted import Fitted


def write_fit_report(fitted: Fitted, held: Examination | None, folder: Path, data: str) -> Path:
    """Write the report into `folder` and return the file."""
    require_matplotlib()
    with look():
        body = [*_header(fitted, held, data), _curve(fitted)]
        if held is not None:
            body += [_predictions(fitted, held), _worst(fitted, held)]
        body.append(_settings(fitted))
    file = folder / REPORT_FILE
    write_bytes(file, document(f"fit: {data}", body).encode("utf-8"))
    return file


def _header(fitted: Fitted, held: Examination | None, data: str) -> list[str]:
    name = fitted.settings.architecture if fitted.settings.start is None else "a constructed network, trained on"
    parts = [f"<h1>{escape(name)}</h1>", f'<p class="formula">{escape(data)}</p>']
    if fitted.status != "finished":
        parts.append(paragraph(f"Training {fitted.status} before its end; these are the best weights so far.", "bad"))
    if fitted.warning:
        parts.append(paragraph(f"Warning: {fitted.warning}.", "bad"))
    facts = [("task", escape(fitted.task.describe()))]
    if held is not None:
        r = held.report
        spread = " (95 % from {} to {})".format(*map(nearest, r["interval"])) if r["interval"] else ""
        measure = "share of wrong labels" if fitted.task.classes is not None else "root mean square in units of σ"
        claim = f"Error on {r['sets']} held-out sets: {nearest(r['error'])}{spread}, {measure}."
        parts.append(paragraph(f"{claim} The best constant has {nearest(r['baseline'])}.", "claim"))
        if "rmse" in r:
            facts.append(("root mean square error", escape(", ".join(nearest(v) for v in r["rmse"]))))
            facts.append(("R²", escape(", ".join("–" if v is None else nearest(v, 4) for v in r["r2"]))))
        order = "" if r["equivariant"] else " (this architecture knows tokens by their places)"
        facts += [
            ("parameters", count(r["parameters"])),
            ("equivariance error", escape(nearest(r["equivariance_error"], 2) + order)),
            ("time per set", f"{duration(r['milliseconds_per_set'] / 1e3)} in a batch, "
             f"{duration(r['milliseconds_one_set'] / 1e3)} alone"),
        ]  # fmt: skip
    facts.append(("training", f"{duration(fitted.seconds)}, best epoch {fitted.best_epoch}"))
    parts.append(definitions(facts))
    if fitted.settings.start is not None:
        parts.append(paragraph("The certificate of the constructed network does not hold for the trained one.", "note"))
    return parts


def _curve(fitted: Fitted) -> str:
    text = "Mean loss of each epoch; the weights of the marked epoch are the ones kept. Epoch 0 is before training."
    return section("curve", "Learning curve", paragraph(text), gallery([pictures.curve(fitted)]))


def _predictions(fitted: Fitted, held: Examination) -> str:
    return section("predictions", "Predictions on held-out sets", gallery(pictures.predictions(fitted, held)))


def _worst(fitted: Fitted, held: Examination) -> str:
    rows = [
        [str(w["set"]), nearest(w["error"]), str(w["tokens"]), str(w.get("token", "–"))] for w in held.report["worst"]
    ]
    if not rows:
        return section("worst", "Worst examples", paragraph("No held-out set has an error."))
    parts = [
        paragraph("The held-out sets with the largest errors, by their number in the data (from 0)."),
        table(("set", "error", "tokens", "worst token"), rows, range(4)),
        gallery(pictures.worst(fitted, held)),
    ]
    return section("worst", "Worst examples", *parts)


def _settings(fitted: Fitted) -> str:
    rows = [[code(name), code(str(value))] for name, value in fitted.settings.to_data().items()]
    history = json.dumps(fitted.history)
    return section(
        "settings",
        "Settings",
        paragraph("The same settings, data and machine give the same weights, bit for bit."),
        details("All of them", table(("setting", "value"), rows)),
        details("Both losses of every epoch", f"<pre>{escape(history)}</pre>"),
    )
