"""`sumformer reproduce NAME`: an experiment of the papers beside its published figure."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sumformer.cli.device import Device, check_device
from sumformer.cli.output import Json, command, console, drawing, print_json
from sumformer.cli.places import make_folder
from sumformer.cli.said_progress import said_progress
from sumformer.errors import InputError
from sumformer.experiments.reproduce.outcome import Outcome
from sumformer.experiments.reproduce.registry import EXPERIMENTS, experiment

FOLDER = Path("reproduce-output")
Name = Annotated[str, typer.Argument(help=f"One of {', '.join(EXPERIMENTS)}.", show_default=False)]
Size = Annotated[str, typer.Option("--size", help="full, as published; reduced, minutes on a CPU; tiny, seconds.")]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="NAME=VALUE, another value of the configuration in NAME.json, as steps=500; repeatable."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help=f"Folder for NAME.json, NAME.csv and NAME.png; default {FOLDER}/NAME."),
]
Redraw = Annotated[Path | None, typer.Option("--redraw", help="Draw the picture of an earlier NAME.json; run nothing.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what --out holds of an earlier run.")]


@command
def reproduce(
    name: Name,
    size: Size = "reduced",
    device: Device = "cpu",
    changes: Changes = None,
    out: Out = None,
    redraw: Redraw = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Run an experiment of the papers, and compare with the published figure."""
    chosen = experiment(name)
    check_device(device)
    if redraw is not None:
        outcome, picture = _stored(redraw, name), f"{redraw.stem}.png"
        folder = out or redraw.parent
        make_folder(out, [picture], overwrite)
    else:
        config, picture = chosen.config(size, device, changes or ()), f"{name}.png"
        folder = out or FOLDER / name
        make_folder(folder, [f"{name}.json", f"{name}.csv", picture], overwrite)
        with said_progress() as tell:
            outcome = chosen.run(config, tell)
        outcome.write(folder)
    with drawing(picture):
        chosen.draw(outcome, folder / picture)
    if as_json:
        print_json(asdict(outcome))
        return
    spent = "" if outcome.seconds is None else f"{outcome.seconds:.0f} s "
    console.print(f"{name}: {chosen.about} ({spent}on {outcome.machine})")
    if size != "full" and redraw is None:
        console.print(f"size {size} is smaller than published: its numbers are no test of the paper, --size full is")
    for line in outcome.findings:
        console.print(f"- {line}", markup=False)
    for line in outcome.unsaid:
        console.print(f"left unsaid by the paper: {line}", markup=False)
    console.print(f"written to {folder}", markup=False)


def _stored(path: Path, name: str) -> Outcome:
    outcome = Outcome.read(path)
    if outcome.name != name:
        raise InputError(f"--redraw: expected a result of {name}, {path} is one of {outcome.name}")
    return outcome
