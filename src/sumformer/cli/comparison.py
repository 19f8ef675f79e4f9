"""`--as all`: one target as Sumformer, Transformer, Linformer and Performer, each certified, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

from sumformer.certificates.attack import AttackResult, attack, violation
from sumformer.certificates.quadrature import Quadrature, quadrature
from sumformer.cli.output import console, messages, print_json
from sumformer.errors import CertificateError, RefusedError
from sumformer.nn.compiled_transformer import CompiledTransformer
from sumformer.nn.look_up_transformer import LookUpTransformer
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.faithfulness import faithfulness
from sumformer.theorems.construction import Construction, construct

ARCHITECTURES = ("sumformer", "transformer", "linformer", "performer")
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
    f: Target, epsilon: float, route: str | None, options: dict[str, Any], out: Path | None, as_json: bool
) -> None:
    """Build all four, attack each, print the table; what is refused says why in its place."""
    rows = []
    for architecture in ARCHITECTURES:
        with messages.status(f"{architecture} …"):
            rows.append(_row(f, epsilon, architecture, route, options, out))
    if as_json:
        print_json({"target": f.source, "epsilon": epsilon, "rows": rows})
        return
    built = [row for row in rows if "refused" not in row]
    table = Table("", *(row["architecture"] for row in built), title=repr(f))
    for key, label in _LINES.items():
        table.add_row(label, *(_show(row[key]) for row in built))
    console.print(table)
    for row in rows:
        if "refused" in row:
            console.print(f"{row['architecture']} refused: {row['refused']}", markup=False)
    if not any("refused" in row for row in rows if row["architecture"] == "transformer"):
        console.print("the Transformer's attention costs O(n²) by definition; the others are linear in n")


def _row(
    f: Target, epsilon: float, architecture: str, route: str | None, options: dict[str, Any], out: Path | None
) -> dict[str, Any]:
    chosen = {} if architecture == "sumformer" else options
    try:
        made = construct(f, epsilon, architecture=architecture, route=route, options=chosen)
    except RefusedError as refusal:
        return {"architecture": architecture, "refused": str(refusal), "reachable": refusal.reachable}
    found, refuted = examine(made)
    if refuted:
        raise CertificateError(f"the attack refutes the bound of the {architecture}: {found.witness}")
    if out is not None:
        made.save(out / architecture)
    return {
        "architecture": architecture,
        **sizes(made),
        "certified_error": made.certificate.total,
        "observed_error": found.worst,
        "seconds": made.seconds,
    }


def examine(construction: Construction) -> tuple[AttackResult | Quadrature, bool]:
    """The worst found against the claim, and whether it refutes it: an attack, or for d_p a quadrature."""
    total, p = construction.certificate.total, construction.certificate.p
    if p is not None:
        measured = quadrature(construction.target, construction.network, p)
        return measured, measured.refutes(total)
    found = attack(construction.target, construction.network)
    return found, found.worst > total and violation(found, total)[0]


def attention_layers(made: Construction) -> int | None:
    """How many are not 0, where that is counted."""
    if isinstance(made.network, CompiledTransformer | LookUpTransformer):
        return faithfulness(made.network).attention_layers
    return 0 if made.certificate.architecture == "sumformer" else None


def sizes(made: Construction) -> dict[str, Any]:
    """Layers, width and parameters, counted from the module."""
    if isinstance(made.network, CompiledTransformer | LookUpTransformer):
        counted = faithfulness(made.network)
        if not counted.faithful:
            raise CertificateError(f"the network is not what the theorem speaks of: {'; '.join(counted.faults)}")
        names = ("attention_layers", "feed_forward_layers", "width", "nonzero", "dense", "largest_weight")
        return {name: getattr(counted, name) for name in names}
    tensors = list(made.network.parameters())
    return {
        "attention_layers": 0,
        "feed_forward_layers": None,
        "width": made.certificate.latent_dimension,
        "nonzero": sum(int(p.count_nonzero()) for p in tensors),
        "dense": sum(p.numel() for p in tensors),
        "largest_weight": max((float(p.abs().max()) for p in tensors if p.numel()), default=None),
    }


def _show(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
