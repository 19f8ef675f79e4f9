"""`sumformer COMMAND …`: a user's mistake or a refusal is one clear message and exit code 2; a bug is a traceback."""

from __future__ import annotations

import sys
from re import match

import typer

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
    help="Permutation-equivariant functions as networks with a certified worst-case error.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)
for command in (
    construct.construct,
    verify.verify,
    explain.explain,
    fit.fit,
    predict.predict,
    compare.compare,
    trace.trace,
    sizes.sizes,
    targets.targets,
    dimensions.dimensions,
    routes.routes,
    bench.bench,
    reproduce.reproduce,
    demo.demo,
    info.info,
):
    app.command()(command)


def main() -> None:
    """Entry point."""
    app(args=[apart(argument) for argument in sys.argv[1:]])


def apart(argument: str) -> str:
    """A formula that begins with a minus is no option: a blank before it says so."""
    return f" {argument}" if match(r"-[^-].*[(*]|-[xy]$", argument) else argument
