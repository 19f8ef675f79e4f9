"""`sumformer sizes EXPRESSION --epsilon 0.5,0.2,0.1`: layers, width, parameters, weights of every construction."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from sumformer.cli.construct import BoxOption, Dim, Expression, Positions
from sumformer.cli.formula import formula_target
from sumformer.cli.output import Json, command, console, messages, print_json
from sumformer.cli.places import check_picture
from sumformer.errors import InputError
from sumformer.experiments.sizes import KEYS, rows
from sumformer.nn.patterns.named import named

Tokens = Annotated[str, typer.Option("--tokens", "-n", help="How many tokens, one number ≥ 2.")]
Epsilons = Annotated[str, typer.Option("--epsilon", "-e", help="The errors d_p(f, N) ≤ ε asked for, by commas.")]
NormP = Annotated[float, typer.Option("--norm-p", help="p of d_p.")]
PatternOption = Annotated[str, typer.Option("--pattern", help="Of the sparse Transformer: window:1, strided:2, …")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Write the log-log picture here (png, svg, pdf).")]


@command
def sizes(
    expression: Expression,
    tokens: Tokens = "3",
    dim: Dim = 1,
    box: BoxOption = None,
    positions: Positions = False,
    epsilon: Epsilons = "0.5,0.2,0.1",
    norm_p: NormP = 1.0,
    pattern: PatternOption = "window:1",
    out: Out = None,
    as_json: Json = False,
) -> None:
    """One attention layer, or about ε^-d of them: every construction's size against ε, built or counted."""
    check_picture(out)
    f = formula_target(expression, n=tokens, d=dim, box=box, positions=positions)
    found = []
    with messages.status("constructing …") as status:
        for row in rows(f, _numbers(epsilon), norm_p, named(pattern)):
            status.update(f"{row['name']}, ε = {row['epsilon']:g}: {row['how']}")
            found.append(row)
    if out is not None:
        from sumformer.experiments.sizes_picture import plot

        plot(found, f"{f.source}, n = {f.tokens.minimum}, d = {f.input_box.d}: d_{norm_p:g}(f, N) ≤ ε", out)
    if as_json:
        print_json({"target": f.source, "n": f.tokens.minimum, "d": f.input_box.d, "p": norm_p, "rows": found})
    else:
        show(found, f"{f!r}: d_{norm_p:g}(f, N) ≤ ε")
        if out is not None:
            console.print(f"written to {out}", markup=False)


def show(found: list[dict[str, Any]], title: str) -> None:
    """The table in the terminal; * marks what was counted by formula."""
    console.print(title, markup=False)
    table = Table(box=SIMPLE_HEAD, padding=0, show_edge=False)  # every number whole in 80 columns
    table.add_column("construction", no_wrap=True)
    for head in ("ε", "attention", "token-wise", "width", "weights", "largest"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in (row for row in found if row["how"] != "refused"):
        mark = "*" if row["how"] == "formula" else ""
        numbers = ["–" if row[key] is None else _show(row[key]) + (mark if key != "width" else "") for key in KEYS]
        table.add_row(row["name"], f"{row['epsilon']:g}", *numbers)
    console.print(table)
    console.print("width: numbers per token between layers; of a sumformer, which has none, d'")
    if any(row["how"] == "formula" for row in found):
        console.print(
            "* too large to build: counted by the theorem's formulas for a δ that the certified modulus of f allows. "
            "Attention layers and width are exact for this δ; token-wise layers and weights are at most so many (their "
            "read-out layers are estimated from above), and so is the largest weight"
        )
    refused = {(row["name"], row["note"]): row["epsilon"] for row in found if row["how"] == "refused"}
    for (name, note), epsilon in refused.items():
        console.print(f"{name} refuses ε = {epsilon:g}: {note}", markup=False)


def _show(value: float) -> str:
    if isinstance(value, int):
        text = str(value)
        return text if len(text) <= 6 else f"{text[0]}.{text[1:3]}e{len(text) - 1}"
    return f"{value:.3g}"


def _numbers(text: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < value < float("inf") for value in found):
        raise InputError(f"--epsilon {text}: expected positive numbers by commas, as 0.5,0.2,0.1")
    return found
