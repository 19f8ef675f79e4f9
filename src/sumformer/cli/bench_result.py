"""One run of a benchmark: measured, written as bench.json and bench.png, shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sumformer.cli.output import console, drawing, print_json
from sumformer.cli.places import make_folder
from sumformer.cli.said_progress import said_progress

Result = dict[str, Any]
FILES = ("bench.json", "bench.png")


def report(
    measure: Callable[[Callable[[str], None]], Result],
    draw: Callable[[Result, Path], object],
    show: Callable[[Result], None],
    out: Path,
    overwrite: bool,
    as_json: bool,
) -> None:
    """`measure` is given the function that says how far it is."""
    make_folder(out, FILES, overwrite)
    with said_progress() as tell:
        result = measure(tell)
    (out / "bench.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    with drawing("bench.png"):
        draw(result, out / "bench.png")
    if as_json:
        print_json(result)
    else:
        show(result)
        console.print(f"written to {out}", markup=False)
