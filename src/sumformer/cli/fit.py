"""`sumformer fit DATA --as ARCHITECTURE --out DIR`: train a network on data; nothing is lost on the way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from sumformer.cli import learning
from sumformer.cli.output import Json, command, console, drawing, messages, print_json
from sumformer.cli.training_progress import shown_progress
from sumformer.errors import FolderInUseError, InputError
from sumformer.learn.architectures import ARCHITECTURES
from sumformer.learn.evaluation import Examination, examine
from sumformer.learn.fitted import Fitted
from sumformer.learn.fitting import Folder, split_of
from sumformer.learn.fitting import fit as run_fit
from sumformer.learn.reading import read
from sumformer.learn.sampling import Sampling
from sumformer.learn.sets import Sets
from sumformer.learn.settings import Settings

As = Annotated[str | None, typer.Option("--as", help=f"One of {', '.join(ARCHITECTURES)}. Default mlp-sumformer.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the network, checkpoints and report.")]
Start = Annotated[Path | None, typer.Option("--start", help="Folder of a constructed network to train on from.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --out, to the same bits.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Begin anew over whatever run is in --out.")]
Hidden = Annotated[int | None, typer.Option("--hidden", help="Hidden units; default 64.")]
Depth = Annotated[int | None, typer.Option("--depth", help="Hidden layers or blocks; default 2.")]
Latent = Annotated[int | None, typer.Option("--latent", help="Latent dimension d' (k of an attention); default 32.")]
Parameters = Annotated[int | None, typer.Option("--parameters", help="Choose --hidden for at most so many parameters.")]
Epochs = Annotated[
    int | None, typer.Option("--epochs", help="At most so many; default: about 6000 steps, with attention fewer.")
]
BatchSize = Annotated[int | None, typer.Option("--batch-size", help="Sets in a step; default 32.")]
Rate = Annotated[float | None, typer.Option("--learning-rate", help="Default 0.003; attention and --start 0.001.")]
Patience = Annotated[int | None, typer.Option("--patience", help="Epochs without improvement before stopping.")]
Validation = Annotated[float | None, typer.Option("--validation", help="Share held out to stop early; default 0.15.")]
TestShare = Annotated[float | None, typer.Option("--test", help="Share held out for the report; default 0.15.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Same seed, data and machine: same result; default 0.")]
Threads = Annotated[int | None, typer.Option("--threads", help="Threads of torch; default: by the size of a step.")]
Device = Annotated[str | None, typer.Option("--device", help="cpu or cuda; default cpu.")]
SaveEvery = Annotated[float, typer.Option("--save-every", help="Seconds between checkpoints.")]
NoReport = Annotated[bool, typer.Option("--no-report", help="Skip report.html.")]

BUILDING = {"architecture": "--as"} | {name: f"--{name}" for name in ("hidden", "depth", "latent", "parameters")}


@command
def fit(
    data: learning.Data,
    out: Out,
    architecture: As = None,
    start: Start = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    hidden: Hidden = None,
    depth: Depth = None,
    latent: Latent = None,
    parameters: Parameters = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    learning_rate: Rate = None,
    patience: Patience = None,
    validation: Validation = None,
    test: TestShare = None,
    seed: Seed = None,
    threads: Threads = None,
    device: Device = None,
    save_every: SaveEvery = 5.0,
    per: learning.Per = None,
    task: learning.TaskOption = None,
    set_column: learning.SetColumn = "set",
    features: learning.Features = None,
    targets: learning.Targets = None,
    sets: learning.SampledSets = 1000,
    tokens: learning.SampledTokens = 10,
    dim: learning.Dim = 1,
    box: learning.BoxOption = None,
    no_report: NoReport = False,
    as_json: Json = False,
) -> int | None:
    """Train a network on sets of tokens. Ctrl-C stops and saves; --resume goes on, after kill -9 as well."""
    options: dict[str, Any] = {
        "architecture": architecture,
        "hidden": hidden,
        "depth": depth,
        "latent": latent,
        "parameters": parameters,
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "patience": patience,
        "validation": validation,
        "test": test,
        "seed": seed,
        "threads": threads,
        "device": device,
        "start": None if start is None else str(start),
    }
    given = {name: value for name, value in options.items() if value is not None}
    if start is not None:
        _check_start(start, given)
    sampling = Sampling(sets, tokens, dim, box)
    read_sets = read(data, learning.reading(per, task, set_column, features, targets, sampling))
    place = Folder(out, resume, overwrite, save_every)
    if resume and not out.exists():
        messages.print(f"nothing to resume in {out}: a new run begins", markup=False)
    try:
        with shown_progress() as report:
            fitted = run_fit(read_sets, Settings(**given), place, report, changes=given)
    except FolderInUseError as error:
        raise FolderInUseError(error.folder, error.there, error.resumable, ("--resume", "--overwrite")) from None
    held = examination(fitted, read_sets)
    fitted = fitted.reported({} if held is None else held.report)
    fitted.save(out)
    if not no_report:
        from sumformer.experiments.fit_report import write_fit_report

        with drawing("report.html"):
            write_fit_report(fitted, held, out, data)
    if as_json:
        print_json(summary(fitted, out))
    else:
        show(fitted, out)
    if fitted.status == "stopped":
        epoch = f"epoch {fitted.history[-1]['epoch']}"
        messages.print(f"stopped after {epoch}; the best network so far is saved. --resume goes on to the same bits")
        return 130
    return None


def _check_start(start: Path, given: Mapping[str, Any]) -> None:
    """Refuse options that say how to build a network, where there is one already."""
    idle = [option for name, option in BUILDING.items() if name in given]
    if idle:
        raise InputError(
            f"--start goes on with the network in {start}, which has its architecture and size already: "
            f"leave out {', '.join(idle)}"
        )


def examination(fitted: Fitted, sets: Sets) -> Examination | None:
    """On the sets held out for testing; None where none were."""
    places = split_of(sets, fitted.settings).test
    return examine(fitted, sets.subset(places), places) if len(places) else None


def summary(fitted: Fitted, out: Path) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "out": str(out),
        "status": fitted.status,
        "task": fitted.task.describe(),
        "architecture": fitted.settings.architecture if fitted.settings.start is None else "constructed",
        "epochs": len(fitted.history) - 1,
        "best_epoch": fitted.best_epoch,
        "seconds": fitted.seconds,
        "settings": fitted.settings.to_data(),
        "warning": fitted.warning or None,
        **fitted.report,
        "history": fitted.history,
    }


def show(fitted: Fitted, out: Path) -> None:
    """The report in the terminal."""
    name = fitted.settings.architecture if fitted.settings.start is None else f"from {fitted.settings.start}"
    console.print(f"{fitted.task.describe()}; {name}; {fitted.status}", markup=False)
    report = fitted.report
    table = Table("", "held-out sets", show_header=bool(report))
    if report:
        spread = "  (95 % from {:.4g} to {:.4g})".format(*report["interval"]) if report["interval"] else ""
        table.add_row("error", f"{report['error']:.4g}{spread}", style="bold")
        table.add_row("error of the best constant", f"{report['baseline']:.4g}")
        for key, words in (("rmse", "root mean square, in units of y"), ("r2", "R²")):
            if key in report:
                table.add_row(words, ", ".join("–" if v is None else f"{v:.4g}" for v in report[key]))
        table.add_row("sets", str(report["sets"]))
        table.add_row("equivariance error", f"{report['equivariance_error']:.1e}")
        table.add_row("milliseconds per set", f"{report['milliseconds_per_set']:.3g} in a batch")
        table.add_row("parameters", f"{report['parameters']:,}")
        worst = [f"{w['set']} ({w['error']:.3g})" for w in report["worst"]]
        table.add_row("worst sets (error)", ", ".join(worst) or "none has an error")
    best = f"{fitted.best_epoch} of {len(fitted.history) - 1}"
    table.add_row("best epoch", best)
    table.add_row("training", f"{fitted.seconds:.1f} s")
    console.print(table)
    if report and not report["equivariant"]:
        console.print("this architecture knows tokens by their places: another order of a set gives other results")
    unseen = fitted.standardisation.unseen
    if unseen:
        names = [str(c) if fitted.columns is None else fitted.columns.features[c] for c in unseen]
        console.print(f"the same in all training sets, so not looked at: {', '.join(names)} of x", markup=False)
    if fitted.settings.start is not None:
        console.print("the certificate of the constructed network does not hold for the trained one")
    if fitted.warning:
        console.print(f"warning: {fitted.warning}", markup=False, style="bold")
    console.print(f"written to {out}", markup=False)
