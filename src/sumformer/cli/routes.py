"""`sumformer routes EXPRESSION`: what each route to a Sumformer would cost and certify, without building."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from sumformer.algebra.rounding import shown_up
from sumformer.cli.construct import BoxOption, Dim, Dtype, Epsilon, Expression, Positions, Tokens
from sumformer.cli.formula import described, formula_target
from sumformer.cli.output import Json, command, console, messages, print_json
from sumformer.errors import InputError
from sumformer.theorems.alberti_2023.arithmetic import ARITHMETICS
from sumformer.theorems.built import Estimate
from sumformer.theorems.routes import estimate, in_order


@command
def routes(
    expression: Expression,
    epsilon: Epsilon = 1e-3,
    dim: Dim = 1,
    tokens: Tokens = "any",
    box: BoxOption = None,
    positions: Positions = False,
    dtype: Dtype = "float64",
    as_json: Json = False,
) -> None:
    """Compare the routes for EXPRESSION at EPSILON: which can take it, how large, how close, how long."""
    if dtype not in ARITHMETICS:
        raise InputError(f"--dtype: expected one of {', '.join(ARITHMETICS)}, got {dtype!r}")
    f = formula_target(expression, n=tokens, d=dim, box=box, positions=positions)
    found: dict[str, Estimate] = {}
    with messages.status("…") as status:
        for route in in_order(f):
            status.update(f"route {route} …")
            found[route] = estimate(f, epsilon, ARITHMETICS[dtype], route)
    chosen = next((name for name, one in found.items() if one.possible), None)
    if as_json:
        rows: dict[str, Any] = {name: asdict(one) for name, one in found.items()}
        print_json({**described(f), "epsilon": epsilon, "chosen": chosen, "routes": rows})
        return
    console.print(Text(f"{f!r}, ε = {epsilon:g}", style="bold"))
    table = Table("route", "", "d'", "terms", "seconds", "reaches ε", box=SIMPLE, pad_edge=False)
    for name, one in found.items():
        mark = "chosen" if name == chosen else "possible" if one.possible else "no"
        table.add_row(name, mark, *_numbers(one), style="bold" if name == chosen else "")
    console.print(table)
    console.print("reaches ε: with these terms; route grid, and one that is refused: with all that it may take")
    for name, one in found.items():
        console.print(f"{name}: {one.why}", markup=False)


def _numbers(one: Estimate) -> tuple[str, str, str, str]:
    return (
        "" if one.latent_dimension is None else f"{one.latent_dimension:,}",
        "" if one.terms is None else f"{one.terms:,}",
        "" if one.seconds is None else f"≈ {one.seconds:.2g}",
        "" if one.reachable is None else shown_up(one.reachable, 2),
    )
