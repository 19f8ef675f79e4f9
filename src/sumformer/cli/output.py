"""What every command shares: a console, `--json`, and errors that exit with 2."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, ParamSpec

import typer
from rich.console import Console
from rich.text import Text

from sumformer.algebra.rounding import shown_up
from sumformer.errors import MissingDependencyError, RefusedError, SumformerError

P = ParamSpec("P")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output instead of a report.")]

console = Console(highlight=False)
messages = Console(stderr=True, highlight=False)


def print_json(data: Mapping[str, Any]) -> None:
    """One object on standard output; what JSON has no number for becomes null."""
    print(json.dumps(_plain(data), ensure_ascii=False))


@contextmanager
def drawing(what: str) -> Iterator[None]:
    """Around a picture that goes with a result: where what draws it is missing, the result is given without."""
    try:
        with messages.status(f"drawing {what} …"):
            yield
    except MissingDependencyError as missing:
        messages.print(f"{what} is left out: {missing}", markup=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def command(function: Callable[P, int | None]) -> Callable[P, None]:
    """A command: its return value is the exit code; anything this package raises on purpose is a message and 2."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = function(*args, **kwargs)
        except SumformerError as error:
            _report(error, bool(kwargs.get("as_json", False)))
            raise typer.Exit(2) from None
        except OSError as error:
            _report(
                SumformerError(f"{error.filename or ''}: {error.strerror or error}"), bool(kwargs.get("as_json", False))
            )
            raise typer.Exit(2) from None
        if code:
            raise typer.Exit(code)

    return run


def effort(found: Any) -> str:
    """How much was tried, in words."""
    return f"{found.trials} trials{', cut short' if found.cut_short else ''}"


def not_reached(found: Any) -> str:
    """What there was no time to try, in words, or nothing."""
    missing = getattr(found, "not_reached", ())
    return f"no time was left to attack with: {'; '.join(missing)}" if missing else ""


def shown(bound: float) -> str:
    """Three digits, rounded up; what is only not 0 is said to be less than any number of note."""
    return "< 1e-300" if 0 < bound < 1e-300 else shown_up(bound)


def _report(error: SumformerError, as_json: bool) -> None:
    kind = "refused" if isinstance(error, RefusedError) else "error"
    if as_json:
        data: dict[str, Any] = {"error": str(error), "type": type(error).__name__}
        if isinstance(error, RefusedError):
            data |= {"reasons": list(error.reasons), "reachable": error.reachable}
        print_json(data)
    messages.print(Text(f"{kind}: ", style="bold red") + Text(str(error)))
