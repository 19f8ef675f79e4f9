"""`sumformer dimensions`: d' against dimension, bandwidth and ε, the table that says when not to use this.

`sumformer dimensions EXPRESSION`: the three latent dimensions of a polynomial target, side by side, and its σ.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.table import Table

from sumformer.cli.construct import Dim
from sumformer.cli.output import Json, command, console, messages, print_json
from sumformer.errors import InputError, RefusedError
from sumformer.targets import parse
from sumformer.theorems.alberti_2023.power_sums import side_by_side
from sumformer.theorems.construction import construct

Expression = Annotated[
    str | None,
    typer.Argument(
        help='A polynomial target, as "sum_others((x-y)**4)"; none: Gaussian attention.', show_default=False
    ),
]
Count = Annotated[
    str | None,
    typer.Option(
        "--tokens", "-n", help="How many: of EXPRESSION 4, 5, …; of the attention any, ..1000 or 8. [default: 4, any]"
    ),
]
Flat = Annotated[bool, typer.Option("--flat", help="x holds all n tokens one after another: x[1]*x[2] + x[0].")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print a table for the README.")]

MOST_WRITTEN = 40  # terms of σ, of all coordinates together, that are still written out


def rows(
    dims: tuple[int, ...],
    sharpness: tuple[int, ...],
    epsilons: tuple[float, ...],
    tokens: str = "any",
    tell: Callable[[str], object] = len,
) -> list[dict[str, Any]]:
    """Gaussian attention exp(−s‖x−y‖²): the latent dimension of the certified network, or why there is none."""
    out: list[dict[str, Any]] = []
    count = len(dims) * len(sharpness)
    for d in dims:
        for s in sharpness:
            weight = f"exp(-{s}*norm2(x-y))"
            row: dict[str, Any] = {"dim": d, "sharpness": s}
            for epsilon in epsilons:
                tell(f"row {len(out) + 1} of {count}: d = {d}, s = {s}, ε = {epsilon:g} …")
                try:
                    built = construct(f"sum({weight}*y)/sum({weight})", epsilon, d=d, n=tokens, route="sums")
                    row[f"{epsilon:g}"] = built.certificate.latent_dimension
                except RefusedError as refusal:
                    row[f"{epsilon:g}"] = f"refused: {str(refusal).splitlines()[0]}"
            out.append(row)
    return out


@command
def dimensions(
    expression: Expression = None,
    tokens: Count = None,
    dim: Dim = 1,
    flat: Flat = False,
    markdown: Markdown = False,
    as_json: Json = False,
) -> None:
    """Latent dimension d': three choices for a polynomial EXPRESSION; without one, Gaussian attention's."""
    if expression is None and flat:
        raise InputError("--flat is about an EXPRESSION: dimensions 'x[0]*x[1]' --flat --tokens 2")
    if expression is not None:
        if tokens is not None and not (tokens.isascii() and tokens.isdigit()):
            raise InputError(f"--tokens: expected a number of tokens for EXPRESSION, as 4, got {tokens}")
        count = int(tokens or 4)
        with messages.status("decomposing …"):
            choices = _of_a_polynomial(expression, count, dim, flat)
        heads = [
            "choice",
            "|β| ≤",
            "d'",
            "β used",
            "terms of σ",
            "in a product",
            "proved by",
            "P(error)",
        ]
        _show(choices, list(choices[0])[: len(heads)], heads, markdown, as_json)
        if not (markdown or as_json) and any(choice["sigma"] for choice in choices):
            _write_out(choices, count)
        return
    epsilons = (1e-2, 1e-3, 1e-6)
    with messages.status("constructing …") as status:
        table_rows = rows((1, 2, 3, 4), (1, 4, 16, 64), epsilons, tokens or "any", status.update)
    names = ["dim", "sharpness", *(f"{e:g}" for e in epsilons)]
    heads = ["d", "s in exp(−s‖x−y‖²)", *(f"d' at ε = {e:g}" for e in epsilons)]
    _show(table_rows, names, heads, markdown, as_json)


def _of_a_polynomial(expression: str, n: int, d: int, flat: bool) -> list[dict[str, Any]]:
    try:
        return latent_choices(expression, n, d, flat)
    except RefusedError as refusal:
        first = str(refusal).splitlines()[0]
        other = [f"d' of other targets: sumformer routes {shlex.quote(expression)}"] if "polynomial" in first else []
        raise RefusedError(first, [*refusal.reasons, *other], refusal.reachable) from refusal


def latent_choices(expression: str, n: int, d: int, flat: bool = False) -> list[dict[str, Any]]:
    """φ of the paper's proof, the φ that suffices, and the one with the shallowest ψ."""
    tree = parse(expression, n * d if flat else d)
    limits = {"proof": str(n), "sufficient": str(n - 1), "shallowest": "degree"}
    return [
        {
            "choice": form.latent,
            "bound": limits[form.latent],
            "latent_dimension": form.dimension,
            "used": len(form.betas),
            "terms": form.terms,
            "products": form.products,
            "identity": "+".join(sorted({p.method for p in form.proofs})),
            "failure_probability": form.failure_probability,
            "sigma": [str(sigma) for sigma in form.sigmas] if form.terms <= MOST_WRITTEN else None,
        }
        for form in side_by_side(tree, n, d)
    ]


def _write_out(choices: list[dict[str, Any]], n: int) -> None:
    """σ of each coordinate of the output, those that are alike once."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for choice in choices:
        alike.setdefault(tuple(choice["sigma"] or ()), []).append(choice["choice"])
    console.print(f"σ(x; p), where p[β] is the sum of y**β over the other {n - 1} tokens", markup=False)
    for sigma, names in alike.items():
        for i, line in enumerate(sigma):
            which = f" of coordinate {i}" if len(sigma) > 1 else ""
            console.print(f"{', '.join(names)}{which}: {line}", markup=False, highlight=False, soft_wrap=True)


def _show(table_rows: list[dict[str, Any]], names: list[str], heads: list[str], markdown: bool, as_json: bool) -> None:
    cells = [[_cell(row[name]) for name in names] for row in table_rows]
    if as_json:
        print_json({"rows": table_rows})
    elif markdown:
        print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
        for line in cells:
            print("| " + " | ".join(line) + " |")
    else:
        table = Table(*heads, box=SIMPLE, pad_edge=False, collapse_padding=True)
        for line in cells:
            table.add_row(*line)
        console.print(table)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.0e}" if value else "0"
    return "refused" if isinstance(value, str) and value.startswith("refused: ") else str(value)
