"""`sumformer explain DIR`: what each block of a compiled network does, its values on an input beside the ideal ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.table import Table
from torch import Tensor

from sumformer.cli.output import Json, command, console, messages, print_json
from sumformer.errors import InputError
from sumformer.experiments.explain import Explanation
from sumformer.experiments.explain import explain as run

Directory = Annotated[Path, typer.Argument(help="A folder written by `construct … --as transformer`.")]
Input = Annotated[
    str | None,
    typer.Option("--input", "-i", help='Tokens, as "0.1 0.5; 0.2 0.9" (tokens by ;, coordinates by spaces).'),
]
Picture = Annotated[Path | None, typer.Option("--picture", help="Write the residual stream and the attention matrix.")]
All = Annotated[bool, typer.Option("--all", help="List every value, not only the first forty.")]
SHOWN = 40


@command
def explain(
    directory: Directory, tokens: Input = None, picture: Picture = None, everything: All = False, as_json: Json = False
) -> int:
    """Name what every coordinate of the residual stream holds, and compare it with the ideal program."""
    with messages.status("running …"):
        found = run(directory, None if tokens is None else _read(tokens))
    if picture is not None:
        from sumformer.experiments.explain.picture import draw

        draw(found, picture)
    if as_json:
        print_json(summary(found))
    else:
        show(found, everything)
    return 1 if found.violations else 0


def summary(found: Explanation) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "target": found.construction.certificate.target,
        "architecture": found.construction.certificate.architecture,
        "blocks": [
            {"block": b.block, "hidden": b.hidden, "gadgets": b.gadgets, "attention": b.attention} for b in found.blocks
        ],
        "values": [vars(v) for v in found.values],
        "outputs": found.outputs.tolist(),
        "ideal_outputs": found.ideal_outputs.tolist(),
        "target_values": found.wanted.tolist(),
        "violations": found.violations,
    }


def show(found: Explanation, everything: bool) -> None:
    """The explanation in the terminal."""
    c = found.construction.certificate
    console.print(f"{c.target} as a {c.architecture}: {len(found.blocks)} blocks, ε = {c.epsilon:g}", markup=False)
    table = Table("block", "hidden", "gadgets", "complete after it (coordinate)")
    for b in found.blocks:
        kinds = ", ".join(f"{count} {kind}" for kind, count in b.gadgets.items())
        complete = ", ".join(f"{name} ({at})" for name, at in b.complete[:6])
        more = f" … {len(b.complete) - 6} more" if len(b.complete) > 6 else ""
        table.add_row(f"{b.block}{' + attention' if b.attention else ''}", str(b.hidden), kinds, complete + more)
    console.print(table)
    lines = found.values if everything else found.values[:SHOWN]
    values = Table("value", "is", "coordinate", "before block", "computed", "ideal", "off by", "allowed")
    for v in lines:
        numbers = (f"{v.computed:.6g}", f"{v.ideal:.6g}", f"{abs(v.computed - v.ideal):.2g}", f"{v.allowed:.2g}")
        values.add_row(v.name, v.op, str(v.coordinate), str(v.block), *numbers)
    console.print(values)
    if len(lines) < len(found.values):
        console.print(f"{len(found.values) - len(lines)} more values: --all")
    gap = float((found.outputs - found.wanted).abs().max())
    console.print(f"at this input: ‖f − N‖ = {gap:.3g}, certified {c.total:.3g}")
    for name in found.violations:
        console.print(f"{name} is farther off than the ledger allows", style="red", markup=False)


def _read(text: str) -> Tensor:
    try:
        rows = [[float(x) for x in row.replace(",", " ").split()] for row in text.split(";")]
        return torch.tensor(rows, dtype=torch.float64)
    except ValueError as error:
        raise InputError(f'explain: expected tokens as "0.1 0.5; 0.2 0.9", got {text!r} ({error})') from None
