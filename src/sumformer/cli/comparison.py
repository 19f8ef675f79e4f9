"""`--as all`: one target as Sumformer, Transformer, Linformer and Performer, each certified, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

from sumformer.cli.formula import described
from sumformer.cli.output import console, messages, print_json, shown
from sumformer.cli.places import make_folder
from sumformer.errors import CertificateError, RefusedError
from sumformer.targets.target import Target
from sumformer.theorems.construction import construct
from sumformer.theorems.counted_sizes import counted_sizes
from sumformer.theorems.saved_folder import check_folder
from sumformer.theorems.verification import examine

COMPILED = ("transformer", "linformer", "performer")
ARCHITECTURES = ("sumformer", *COMPILED)
_OF_A_ROW = ("dim", "tokens", "box", "dtype")  # so that a row can be read by itself
OF = {"k": ("linformer",), "code": ("sumformer",)}  # an option of one of them alone
_LINES = {
    "attention_layers": "attention layers",
    "feed_forward_layers": "feed-forward layers",
    "width": "width",
    "nonzero": "parameters ≠ 0",
    "dense": "stored densely",
    "largest_weight": "largest weight",
    "certified_error": "certified",
    "observed_error": "worst found",
    "seconds": "seconds",
}


def compare(
    f: Target,
    epsilon: float,
    route: str | None,
    dtype: str,
    options: dict[str, Any],
    out: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Build all four, attack each, print the table; what is refused says why in its place."""
    rows = []
    make_folder(out)
    for folder in [] if out is None else [out / architecture for architecture in ARCHITECTURES]:
        check_folder(folder, None if overwrite else f.source)  # before the work
    for architecture in ARCHITECTURES:
        with messages.status(f"{architecture} …"):
            rows.append(_row(f, epsilon, architecture, route, dtype, options, out))
    if as_json:
        asked = {**described(f), "dtype": dtype}
        told = [{**row, **{name: asked[name] for name in _OF_A_ROW}} for row in rows]
        print_json({**asked, "epsilon": epsilon, "rows": told})
        return
    built = [row for row in rows if "refused" not in row]
    table = Table("", *(row["architecture"] for row in built), title=repr(f))
    for key, label in _LINES.items():
        table.add_row(label, *(_show(key, row[key]) for row in built))
    console.print(table)
    for row in rows:
        if "refused" in row:
            console.print(f"{row['architecture']} refused: {row['refused']}", markup=False)
    if not any("refused" in row for row in rows if row["architecture"] == "transformer"):
        console.print("the Transformer's attention costs O(n²) by definition; the others are linear in n")
    if out is not None:
        names = ", ".join(row["architecture"] for row in built)
        console.print(f"written to folders of {out}: {names}", markup=False)


def _row(
    f: Target, epsilon: float, architecture: str, route: str | None, dtype: str, given: dict[str, Any], out: Path | None
) -> dict[str, Any]:
    chosen = {name: value for name, value in given.items() if architecture in OF.get(name, COMPILED)}
    try:
        made = construct(f, epsilon, architecture=architecture, route=route, dtype=dtype, options=chosen)
    except RefusedError as refusal:
        return {"architecture": architecture, "refused": str(refusal), "reachable": refusal.reachable}
    found, refuted = examine(made, made.certificate.total)
    if refuted:
        raise CertificateError(f"the attack refutes the bound of the {architecture}: {found.witness}")
    if out is not None:
        made.save(out / architecture)
    return {
        "architecture": architecture,
        "route": made.certificate.route,
        "latent_dimension": made.certificate.latent_dimension,
        **counted_sizes(made),
        "certified_error": made.certificate.total,
        "observed_error": found.worst,
        "seconds": made.seconds,
    }


def _show(key: str, value: Any) -> str:
    if value is None:
        return "–"
    if key == "certified_error":
        return shown(value)
    return f"{value:.3g}" if isinstance(value, float) else str(value)
