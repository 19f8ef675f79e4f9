"""`sumformer dimensions`: d' against dimension, bandwidth and ε, the table that says when not to use this."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from sumformer.cli.output import Json, command, console, messages, print_json
from sumformer.errors import RefusedError
from sumformer.theorems.construction import construct

Markdown = Annotated[bool, typer.Option("--markdown", help="Print a table for the README.")]


def rows(dims: tuple[int, ...], sharpness: tuple[int, ...], epsilons: tuple[float, ...]) -> list[dict[str, Any]]:
    """Gaussian attention exp(−s‖x−y‖²): the latent dimension of the certified network, or why there is none."""
    out = []
    for d in dims:
        for s in sharpness:
            weight = f"exp(-{s}*norm2(x-y))"
            row: dict[str, Any] = {"dim": d, "sharpness": s}
            for epsilon in epsilons:
                try:
                    built = construct(f"sum({weight}*y)/sum({weight})", epsilon, d=d)
                    row[f"{epsilon:g}"] = built.certificate.latent_dimension
                except RefusedError as refusal:
                    row[f"{epsilon:g}"] = f"refused: {str(refusal).splitlines()[0]}"
            out.append(row)
    return out


@command
def dimensions(markdown: Markdown = False, as_json: Json = False) -> None:
    """Latent dimension d' of Gaussian attention against d, sharpness and ε."""
    epsilons = (1e-2, 1e-3, 1e-6)
    with messages.status("constructing …"):
        table_rows = rows((1, 2, 3, 4), (1, 4, 16, 64), epsilons)
    names = ["dim", "sharpness", *(f"{e:g}" for e in epsilons)]
    cells = [[_cell(row[name]) for name in names] for row in table_rows]
    heads = ["d", "s in exp(−s‖x−y‖²)", *(f"d' at ε = {e:g}" for e in epsilons)]
    if as_json:
        print_json({"rows": table_rows})
    elif markdown:
        print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
        for line in cells:
            print("| " + " | ".join(line) + " |")
    else:
        table = Table(*heads)
        for line in cells:
            table.add_row(*line)
        console.print(table)


def _cell(value: object) -> str:
    return "refused" if isinstance(value, str) else str(value)
