"""`sumformer compare DATA`: which architecture, with what latent dimension, at equal parameter budget."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from sumformer.cli import learning
from sumformer.cli.output import Json, command, console, drawing, messages, print_json
from sumformer.cli.places import make_folder
from sumformer.cli.said_progress import said_progress
from sumformer.errors import InputError
from sumformer.experiments.comparison import Config, run, write_comparison
from sumformer.experiments.comparison.page import DATA_FILE, spread, verdict, write_rows
from sumformer.experiments.report import REPORT_FILE
from sumformer.learn.architectures import ARCHITECTURES, check_architecture
from sumformer.learn.reading import read
from sumformer.learn.sampling import Sampling

Names = Annotated[str | None, typer.Option("--as", help=f"Some of {','.join(ARCHITECTURES)}; default all.")]
Parameters = Annotated[int, typer.Option("--parameters", help="The budget: at most so many each.")]
Latents = Annotated[str, typer.Option("--latents", help="Latent dimensions (or k) to try.")]
Seeds = Annotated[int, typer.Option("--seeds", help="Runs of each architecture at its chosen latent dimension.")]
Epochs = Annotated[int | None, typer.Option("--epochs", help="Epochs of each run; default: about 2000 steps.")]
Longest = Annotated[int, typer.Option("--longest", help="The largest n at which time and memory are measured.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder for report.html and comparison.json.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a comparison, or another report, in --out.")]


@command
def compare(
    data: learning.Data,
    out: Out = None,
    names: Names = None,
    parameters: Parameters = 10_000,
    latents: Latents = "4,16,64",
    seeds: Seeds = 3,
    epochs: Epochs = None,
    longest: Longest = 1024,
    per: learning.Per = None,
    task: learning.TaskOption = None,
    set_column: learning.SetColumn = "set",
    features: learning.Features = None,
    targets: learning.Targets = None,
    sets: learning.SampledSets = 1000,
    tokens: learning.SampledTokens = 10,
    dim: learning.Dim = 1,
    box: learning.BoxOption = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> int | None:
    """Train every architecture on DATA with as many parameters, and recommend one by a stated rule.

    Ctrl-C ends it with the architectures that are finished.
    """
    how = learning.reading(per, task, set_column, features, targets, Sampling(sets, tokens, dim, box))
    chosen = tuple(ARCHITECTURES) if names is None else tuple(check_architecture(n.strip()) for n in names.split(","))
    if longest < 1:
        raise InputError(f"--longest: expected a number of tokens, got {longest}")
    lengths = (*(n for n in Config().lengths if n < longest), longest)
    config = Config(chosen, parameters, _whole(latents), seeds, epochs, lengths=lengths)
    read_sets = read(data, how)
    make_folder(out, (DATA_FILE, REPORT_FILE), overwrite)

    def keep(so_far: dict[str, Any]) -> None:
        if out is not None:
            write_rows(so_far, out)

    with said_progress() as tell:
        result = run(read_sets, config, tell, keep)
    if out is not None:
        with drawing(REPORT_FILE):
            write_comparison(result, out, data)
    if as_json:
        print_json(result)
    else:
        show(result)
        console.print("nothing written; --out FOLDER keeps it" if out is None else f"written to {out}", markup=False)
    if result["status"] == "stopped":
        kept = "" if out is None else f"; they are kept in {out}"
        messages.print(f"stopped after {len(result['rows'])} of {len(chosen)} architectures{kept}", markup=False)
        return 130
    return None


def _whole(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise InputError(f"--latents: expected numbers as 4,16,64, got {text!r}") from None


def show(result: dict[str, Any]) -> None:
    """Errors and times, then what follows."""
    table = _table("architecture", "d'/k", "size", "validation", "test error", "train s", "ms/set")
    for row in sorted(result["rows"], key=lambda row: fmean(row["validation"])):
        table.add_row(
            row["name"] + ("" if row["equivariant"] else " *"),
            "–" if row["latent"] is None else str(row["latent"]),
            f"{row['parameters']:,}",
            spread(row["validation"]),
            spread(row["test"]),
            f"{row['train_seconds']:.3g}",
            f"{row['milliseconds_per_set']:.2g}",
        )
    console.print(table)
    console.print()
    lengths = _lengths(result)
    against = _table("ms/set at n =", *map(str, lengths), f"MiB (8 × {lengths[-1]})")
    for row in result["rows"]:
        at = {c["n"]: c for c in row["costs"]}
        times = (f"{1e3 * at[n]['predict_seconds']:.2g}" if n in at else "–" for n in lengths)
        memory = f"{at[lengths[-1]]['peak_bytes'] / 2**20:.2g}" if lengths[-1] in at else "–"
        against.add_row(row["name"], *times, memory)
    console.print(against)
    if not all(row["equivariant"] for row in result["rows"]):
        console.print("* depends on the order of tokens")
    for name, why in result["left_out"].items():
        console.print(f"left out: {name}, {why}")
    console.print(f"rule: {result['recommendation']['rule']}")
    console.print(verdict(result), style="bold")


def _table(*heads: str) -> Table:
    """Fits a terminal of 80 columns with every number whole."""
    table = Table(box=SIMPLE_HEAD, padding=0, show_edge=False)
    for place, head in enumerate(heads):
        table.add_column(head, no_wrap=True, justify="right" if place else "left")
    return table


def _lengths(result: dict[str, Any]) -> list[int]:
    return sorted({c["n"] for row in result["rows"] for c in row["costs"]})
