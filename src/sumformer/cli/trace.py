"""`sumformer trace`: ids of all tokens, layer by layer, as the contextual mapping shifts them apart."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from sumformer.cli.output import Json, command, console, print_json
from sumformer.cli.places import check_picture
from sumformer.errors import InputError
from sumformer.nn.patterns.named import named
from sumformer.theorems.yun_2020_deep.plan import Plan, equivariant_plan, position_plan
from sumformer.theorems.yun_2020_deep.trace import Trace, spread_tokens
from sumformer.theorems.yun_2020_deep.trace import trace as run
from sumformer.theorems.yun_2020_sparse.theorem_1 import sparse_plan

Tokens = Annotated[int | None, typer.Option("--tokens", "-n", help="How many tokens; those of --input, or 3.", min=2)]
Dim = Annotated[int | None, typer.Option("--dim", "-d", help="Coordinates per token; those of --input, or 1.", min=1)]
Cells = Annotated[int, typer.Option("--cells", "-q", help="1/δ, cells per coordinate.", min=2)]
Input = Annotated[
    str | None, typer.Option("--input", help='The tokens, as "0.9 0.5 0.1", coordinates by commas: "0.9,0.2 0.5,0.1".')
]
Positions = Annotated[bool, typer.Option("--positions", help="Add positions first, as in the theorem for any f.")]
PatternOption = Annotated[
    str | None, typer.Option("--pattern", help="Sparse attention: window:1, strided:2, star:1, …")
]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Write the staircase picture here (png, svg, pdf).")]
All = Annotated[bool, typer.Option("--all", help="Show the layers that move nothing, too.")]


@command
def trace(
    tokens: Tokens = None,
    dim: Dim = None,
    cells: Cells = 4,
    given: Input = None,
    positions: Positions = False,
    pattern: PatternOption = None,
    out: Out = None,
    every: All = False,
    as_json: Json = False,
) -> None:
    """Watch the contextual mapping of the deep construction at work, in exact arithmetic."""
    check_picture(out)
    start = spread_tokens(tokens or 3, dim or 1) if given is None else _read(given, tokens, dim)
    n, d = len(start), len(start[0])
    plan = _plan(n, d, positions, pattern)
    grid = plan.grid(cells)
    found = run(grid, plan.contextual(grid, d), start)
    if out is not None:
        from sumformer.experiments.contextual_trace import plot

        plot(found, out)
    if as_json:
        print_json(summary(plan, found))
    else:
        show(plan, found, every)
        if out is not None:
            console.print(f"written to {out}", markup=False)


def summary(plan: Plan, found: Trace) -> dict[str, object]:
    """What `--json` prints; ids as strings, which do not overflow."""
    rows = zip(found.what, found.ids, found.moved, strict=True)
    return {
        "theorem": plan.theorem,
        "n": found.grid.n,
        "d": found.grid.d,
        "cells": found.grid.q,
        "tokens": [[str(v) for v in token] for token in found.tokens],
        "attention_layers": len(found.ids) - 1,
        "formula": plan.formulas[1],
        "layers": [{"what": what, "ids": [str(v) for v in ids], "moved": moved} for what, ids, moved in rows],
    }


def show(plan: Plan, found: Trace, every: bool) -> None:
    """The table in the terminal."""
    names = [f"token {j + 1} = ({', '.join(map(str, token))})" for j, token in enumerate(found.tokens)]
    heads = (Column("layer"), Column("what"), *(Column(name, overflow="fold") for name in names))  # every digit
    table = Table(*heads, title=f"{plan.theorem}: ids in units of δ = 1/{found.grid.q}")
    for k, (what, ids, moved) in enumerate(zip(found.what, found.ids, found.moved, strict=True)):
        if moved or every:
            table.add_row(str(k), what, *(str(v) for v in ids))
    console.print(table)
    count = plan.attention_count(found.grid)
    console.print(f"{len(found.ids) - 1} attention layers; the theorem's {plan.formulas[1]} = {count}")


def _plan(n: int, d: int, positions: bool, pattern: str | None) -> Plan:
    if pattern is not None:
        return sparse_plan(named(pattern), n, d)
    return position_plan(n, d) if positions else equivariant_plan(n, d)


def _read(text: str, n: int | None, d: int | None) -> list[list[Fraction]]:
    """The tokens, as many and as wide as was said, or at least two of one width."""
    try:
        tokens = [[Fraction(number) for number in token.split(",")] for token in text.split()]
    except (ValueError, ZeroDivisionError):
        tokens = []
    widths = {len(token) for token in tokens}
    if len(tokens) < 2 or len(widths) > 1:
        raise InputError(
            f'--input {text!r}: expected two tokens or more, as "0.9 0.5 0.1", or "0.9,0.2 0.5,0.1" for d = 2'
        )
    if n not in (None, len(tokens)) or d not in (None, *widths):
        asked = " ".join(f"{name} {size}" for name, size in (("-n", n), ("-d", d)) if size is not None)
        raise InputError(f"--input {text!r}: {len(tokens)} tokens of width {len(tokens[0])}, but {asked} was given")
    if not all(0 <= number <= 1 for token in tokens for number in token):
        raise InputError(f"--input {text!r}: expected numbers from 0 to 1, the cube of the theorem")
    return tokens
