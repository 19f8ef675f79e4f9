"""`sumformer COMMAND …`: a user's mistake or a refusal is one clear message and exit code 2; a bug is a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable
from re import match
from typing import Annotated, Any

import typer

from sumformer import __version__
from sumformer.cli import (
    bench,
    compare,
    construct,
    demo,
    dimensions,
    explain,
    fit,
    info,
    predict,
    reproduce,
    routes,
    sizes,
    targets,
    trace,
    verify,
)

app = typer.Typer(
    name="sumformer",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)
_COMMANDS: dict[Callable[..., Any], str] = {
    construct.construct: "a network within ε of a formula, with a proof",
    verify.verify: "derive a saved certificate again, then try to break it",
    explain.explain: "what every coordinate of a constructed network holds",
    fit.fit: "train a network on sets of tokens",
    predict.predict: "predict targets with a trained network",
    compare.compare: "train every architecture on the same data; recommend one",
    trace.trace: "how a deep construction moves the ids of tokens apart",
    sizes.sizes: "layers, widths and weights of every construction",
    targets.targets: "the gallery of targets",
    dimensions.dimensions: "three latent dimensions for a polynomial",
    routes.routes: "what each route would cost and reach for a formula",
    bench.bench: "seconds, memory and ratios of the mixers and their peers",
    reproduce.reproduce: "run an experiment of the papers",
    demo.demo: "the main job, end to end, in under two minutes",
    info.info: "versions, devices and fast paths",
}
for command, short in _COMMANDS.items():
    app.command(short_help=short)(command)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_version, is_eager=True, help="The version; `info` says more.")
]


@app.callback()
def options(version: Version = False) -> None:
    """Permutation-equivariant functions as networks with a certified worst-case error."""


def main() -> None:
    """Entry point."""
    app(args=[apart(argument) for argument in sys.argv[1:]])


def apart(argument: str) -> str:
    """A formula that begins with a minus is no option: a blank before it says so."""
    return f" {argument}" if match(r"-[^-].*[(*]|-[xy]$", argument) else argument
