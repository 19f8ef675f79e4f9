"""`sumformer reproduce NAME`: an experiment of the papers beside its published figure."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sumformer.cli.device import Device, check_device
from sumformer.cli.output import Json, command, console, drawing, messages, print_json
from sumformer.cli.places import make_folder
from sumformer.errors import InputError
from sumformer.experiments.reproduce.outcome import Outcome
from sumformer.experiments.reproduce.registry import EXPERIMENTS, experiment

Name = Annotated[str, typer.Argument(help=f"One of {', '.join(EXPERIMENTS)}.", show_default=False)]
Size = Annotated[str, typer.Option("--size", help="full, as published; reduced, minutes on a CPU; tiny, seconds.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder for NAME.json, NAME.csv and NAME.png.")]
Redraw = Annotated[Path | None, typer.Option("--redraw", help="Draw the picture of an earlier NAME.json; run nothing.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what --out holds of an earlier run.")]


@command
def reproduce(
    name: Name,
    size: Size = "reduced",
    device: Device = "cpu",
    out: Out = None,
    redraw: Redraw = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Run an experiment of the papers, and compare with the published figure."""
    chosen = experiment(name)
    check_device(device)
    kinds = ("json", "csv", "png") if redraw is None else ("png",)
    make_folder(out, [f"{name}.{kind}" for kind in kinds], overwrite)
    folder = out
    if redraw is not None:
        outcome = Outcome.read(redraw)
        if outcome.name != name:
            raise InputError(f"--redraw: expected a result of {name}, {redraw} is one of {outcome.name}")
        folder = out or redraw.parent
    else:
        with messages.status("…") as status:
            outcome = chosen.run(chosen.config(size, device), lambda text: status.update(text))
        if out is not None:
            outcome.write(out)
    if folder is not None:
        with drawing(f"{name}.png"):
            chosen.draw(outcome, folder / f"{name}.png")
    if as_json:
        print_json(asdict(outcome))
        return
    console.print(f"{name}: {chosen.about} ({outcome.seconds:.0f} s on {outcome.machine})")
    if size != "full" and redraw is None:
        console.print(f"size {size} is smaller than published: its numbers are no test of the paper, --size full is")
    for line in outcome.findings:
        console.print(f"- {line}", markup=False)
    for line in outcome.unsaid:
        console.print(f"left unsaid by the paper: {line}", markup=False)
    if folder is not None:
        console.print(f"written to {folder}", markup=False)
