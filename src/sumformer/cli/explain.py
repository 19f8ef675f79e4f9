"""`sumformer explain DIR`: what each part of a constructed network does, its values on an input beside ideal ones."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table
from torch import Tensor

from sumformer.certificates.checker.files import read_certificate
from sumformer.cli.output import Json, command, console, messages, print_json, shown
from sumformer.cli.places import check_picture
from sumformer.errors import InputError
from sumformer.experiments.explain import Explanation
from sumformer.experiments.explain import explain as run
from sumformer.targets.node import MAX_WIDTH

Directory = Annotated[Path, typer.Argument(help="A folder written by `construct … --out DIR`.")]
Input = Annotated[
    str | None,
    typer.Option("--input", "-i", help='Tokens, as "0.1 0.5; 0.2 0.9" (tokens by ;, coordinates by spaces).'),
]
Picture = Annotated[
    Path | None, typer.Option("--picture", help="Write a picture of what is inside: stream and attention, φ, or cells.")
]
All = Annotated[bool, typer.Option("--all", help="List every value, not only the first forty.")]
SHOWN = 40
NAMED = 24  # characters of a name in the table


@command
def explain(
    directory: Directory, tokens: Input = None, picture: Picture = None, everything: All = False, as_json: Json = False
) -> int:
    """Name what every coordinate of the residual stream, or of Σ, holds, and compare it with the ideal program."""
    check_picture(picture)
    read_certificate(directory, MAX_WIDTH)
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
        "notes": list(found.notes),
        "violations": found.violations,
    }


def show(found: Explanation, everything: bool) -> None:
    """The explanation in the terminal."""
    c = found.construction.certificate
    count = len(found.blocks)
    parts = f"φ, Σ, ψ by route {c.route}" if found.stream is None else f"{count} block{'s' * (count > 1)}"
    console.print(f"{c.target} as a {c.architecture}: {parts}, ε = {c.epsilon:g}", markup=False)
    console.print(_blocks(found))
    lines = found.values if everything else found.values[:SHOWN]
    values = Table(title="first token", box=SIMPLE, pad_edge=False, collapse_padding=True)
    values.add_column("value", overflow="fold", max_width=NAMED)
    for head in ("at", "in" if found.stream is None else "after block", "computed", "ideal", "off by", "allowed"):
        values.add_column(head, no_wrap=True)
    for v in lines:
        numbers = (f"{v.computed:.6g}", f"{v.ideal:.6g}", f"{abs(v.computed - v.ideal):.2g}")
        place = "–" if v.coordinate is None else str(v.coordinate)
        block = f"in {v.block}" if v.op == "mean" and found.stream is not None else str(v.block)
        values.add_row(escape(v.name), place, block, *numbers, _allowed(v.allowed))
    console.print(values)
    for v in lines:
        if v.formula:
            console.print(f"{v.name} = {v.formula}", markup=False)
    if len(lines) < len(found.values):
        console.print(f"{len(found.values) - len(lines)} more values: --all")
    for note in found.notes:
        console.print(note, markup=False)
    gap = float((found.outputs - found.wanted).abs().max())
    claim = (
        f"certified {shown(c.total)}"
        if c.p is None
        else f"certified {c.norm}(f, N) ≤ {shown(c.total)}, a mean over inputs"
    )
    console.print(f"at this input: ‖f − N‖ = {gap:.3g}, {claim}")
    for name in found.violations:
        console.print(f"{name} is farther off than is allowed", style="red", markup=False)


def _blocks(found: Explanation) -> Table:
    table = Table(
        "block" if found.stream is not None else "part", "hidden", "made of", "complete after it (coordinate)"
    )
    for b in found.blocks:
        kinds = ", ".join(f"{count} {kind}" for kind, count in b.gadgets.items())
        complete = ", ".join(f"{name} ({at})" for name, at in b.complete[:6])
        more = f" … {len(b.complete) - 6} more" if len(b.complete) > 6 else ""
        hidden = "–" if b.hidden is None else str(b.hidden)
        table.add_row(f"{b.block}{' + attention' if b.attention else ''}", hidden, kinds, escape(complete) + more)
    return table


def _allowed(value: float | None) -> str:
    if value is None:
        return "–"
    return "any (ramp)" if value == inf else f"{value:.2g}"


def _read(text: str) -> Tensor:
    try:
        rows = [[float(x) for x in row.replace(",", " ").split()] for row in text.split(";")]
        return torch.tensor(rows, dtype=torch.float64)
    except ValueError as error:
        raise InputError(f'explain: expected tokens as "0.1 0.5; 0.2 0.9", got {text!r} ({error})') from None
