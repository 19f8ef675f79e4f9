"""report.html = claim · budget · slices · degrees · time · tables, in one file that loads nothing."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from pathlib import Path

from sumformer.certificates.certificate import CERTIFICATE_FILE, Certificate
from sumformer.errors import NotSupportedError, SumformerError
from sumformer.experiments.construction_report import (
    budget,
    cell_counts,
    degrees,
    meshes,
    slice_lines,
    slice_maps,
    slices,
    timing,
)
from sumformer.experiments.construction_report.header import broken, header
from sumformer.experiments.construction_report.tables import tables
from sumformer.experiments.report import REPORT_FILE
from sumformer.experiments.report.drawing import look
from sumformer.experiments.report.figure import require_matplotlib
from sumformer.experiments.report.markup import details, document, gallery, paragraph, section, table
from sumformer.experiments.report.numbers import count, duration, nearest, rounded_up
from sumformer.learn.files import write_bytes
from sumformer.theorems.constructed import Construction


def write_report(
    construction: Construction,
    path: str | Path,
    attack: budget.Attack | None = None,
    *,
    timing_budget: float = 5.0,
) -> Path:
    """Write the report to `path` (a folder, or a file that ends in .html) and return the file.

    `attack` is what `attack(target, network)` returned; about `timing_budget` seconds go into measuring times.
    """
    require_matplotlib()
    if construction.certificate.p is not None:
        norm = construction.certificate.norm
        raise NotSupportedError(f"a report shows a bound for every input; this certificate bounds {norm}, a mean")
    file = Path(path)
    if file.suffix.lower() not in (".html", ".htm"):
        file = file / REPORT_FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    with look():
        body = [
            *header(construction, file.parent),
            _budget(construction, attack),
            _slices(construction),
            _degrees(construction),
            _timing(construction, timing_budget),
            section(
                "tables", "What the network is made of", *tables(construction), _certificate(construction, file.parent)
            ),
        ]
    write_bytes(file, document(f"f(X)ᵢ = {construction.certificate.target}", body).encode("utf-8"))
    return file


def _budget(construction: Construction, attack: budget.Attack | None) -> str:
    certificate = construction.certificate
    data = budget.run(certificate, attack)
    parts = []
    if data.violated:
        parts.append(broken("The attack found an error above the certified bound: this certificate is false."))
    if attack is None:
        parts.append(paragraph("No attack was run on this network.", "note"))
    else:
        factor = f": the bound is {nearest(certificate.total / attack.worst, 2)} times that" if attack.worst > 0 else ""
        trials = f"{count(attack.trials)} trials ({duration(attack.seconds)})"
        found = f"The worst error the attack found in {trials} is {nearest(attack.worst)}{factor}."
        parts.append(paragraph(f"{found} Sampling may refute a bound, it never certifies one."))
    if missing := getattr(attack, "not_reached", ()):
        parts.append(paragraph(f"No time was left to attack with: {'; '.join(missing)}.", "note"))
    parts.append(gallery([budget.plot(data)]))
    rows = [[escape(b.name), escape(b.kind), escape(repr(b.value))] for b in data.bars]
    by_kind = getattr(attack, "by_kind", None) or {}
    rows += [[escape(f"… on {kind}"), "measured", escape(repr(float(v)))] for kind, v in by_kind.items()]
    parts.append(details("The numbers in full", table(("term", "kind", "error"), rows, (2,))))
    return section("budget", "Error budget", *parts)


def _slices(construction: Construction) -> str:
    data = slices.run(construction)
    title = "f, N and |f − N| on slices"
    if not data.slices:
        return section("slices", title, paragraph(f"Not drawn: {data.reason}."))
    component = "the only output" if data.width == 1 else f"output component 0 of 0 … {data.width - 1}"
    varied = "the own token varies over the interval"
    if data.d >= 2:
        varied = "x[0] and x[1] of the own token vary" + (
            "" if data.d == 2 else ", its other coordinates at the centre"
        )
    parts = [
        paragraph(
            f"Shown: {component}, n = {count(data.n)}; {varied}, the other tokens stay fixed. f is evaluated in "
            f"float64; the worst error seen here is {rounded_up(data.worst)}, certified is {rounded_up(data.bound)}."
        )
    ]
    if data.violated:
        parts.append(broken("An error on these slices exceeds the certified bound: this certificate is false."))
    if data.d == 1:
        parts.append(gallery(slice_lines.plot(data)))
        return section("slices", title, *parts)
    for part, pictures in zip(data.slices, slice_maps.plot(data), strict=True):
        dots = " (dots)" if data.d == 2 and part.others.numel() else ""
        parts += [f"<h3>{escape(part.context)}{dots}</h3>", gallery(pictures)]
    return section("slices", title, *parts)


def _degrees(construction: Construction) -> str:
    title = "Degree against bound"
    if construction.certificate.route == "cells" and construction.certificate.total:
        return _cells(construction)
    kernels = construction.certificate.constants.get("kernels")
    if kernels is None:
        return section("degrees", title, paragraph(f"Route {construction.certificate.route} has no kernels to cut."))
    if not kernels:
        return section("degrees", title, paragraph("Nothing is interpolated: the error is rounding only."))
    if construction.certificate.route == "mesh":
        return _meshes(construction)
    curves = degrees.run(construction)
    shown = sum(len(c.expressions) for c in curves)
    text = (
        "Every factor that mixes x and y is interpolated at a degree so high that the remainder hardly matters, then "
        "cut to the degree the budget allows; the cut costs what the curve shows."
    )
    parts = [paragraph(text), gallery(degrees.plot(curves))]
    if any(len(c.expressions) > 1 for c in curves):
        parts.append(paragraph("Kernels that differ in the names of their coordinates only are drawn once.", "note"))
    if shown < len(kernels):
        parts.append(paragraph(f"{len(kernels) - shown} more kernels are in the table below.", "note"))
    return section("degrees", title, *parts)


def _meshes(construction: Construction) -> str:
    text = (
        "Every factor that mixes x and y depends on x − y and is interpolated between the nodes of a mesh; a finer "
        "mesh has more nodes, but a token meets the same number of them."
    )
    return section("degrees", "Mesh against bound", paragraph(text), gallery(meshes.plot(meshes.run(construction))))


def _cells(construction: Construction) -> str:
    text = (
        "Inside reductions every token is replaced by the centre of its cell, and f moves by at most what is shown; "
        "with cells of half the side it moves by about half as much."
    )
    return section(
        "degrees", "Cells against bound", paragraph(text), gallery([cell_counts.plot(cell_counts.run(construction))])
    )


def _timing(construction: Construction, seconds: float) -> str:
    data = timing.run(construction, seconds)
    threads = f"{data.threads} torch thread{'s' * (data.threads != 1)}"
    where = f"{data.dtype}, CPU, {threads}, medians of {timing.FEWEST_REPETITIONS} to {timing.REPETITIONS} repetitions"
    parts = [paragraph(f"{timing.verdict(data)}. Measured in the same run: {where}.")]
    if not data.pairwise:
        parts.append(paragraph("As written, f has no term in which x and y meet: it costs O(n) itself.", "note"))
    elif data.exact and not data.target:
        parts.append(paragraph("f has too many pairs of tokens at this n to be measured here.", "note"))
    parts.append(gallery([timing.plot(data)]))
    rows = [
        [count(n), *("–" if n not in times else duration(times[n]) for times in (data.network, data.target))]
        for n in sorted(data.network.keys() | data.target.keys())
    ]
    parts.append(details("The times", table(("n", *timing.names(data)), rows, (0, 1, 2))))
    return section("timing", "Time against n", *parts)


def _certificate(construction: Construction, folder: Path) -> str:
    text = _saved(construction.certificate, folder) or construction.certificate.to_json()
    return details("certificate.json", f"<pre>{escape(text)}</pre>")


def _saved(certificate: Certificate, folder: Path) -> str | None:
    """The file beside the report, which holds the hashes too, if it says the same."""
    try:
        text = (folder / CERTIFICATE_FILE).read_text(encoding="utf-8")
        saved = Certificate.read(folder / CERTIFICATE_FILE)
    except (OSError, UnicodeDecodeError, SumformerError):
        return None
    unsigned = replace(saved, weights_sha256=certificate.weights_sha256, config_sha256=certificate.config_sha256)
    return text if unsigned.to_json() == certificate.to_json() else None
