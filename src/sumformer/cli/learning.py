"""What `fit`, `predict` and `compare` share: options that say how to read DATA."""

from __future__ import annotations

from typing import Annotated

import typer

from sumformer.learn.reading import Reading
from sumformer.learn.sampling import Sampling

Data = Annotated[
    str,
    typer.Argument(
        help="FILE.npz or .safetensors with x (N, n, d), y and mask or lengths; FILE.parquet or .csv with a row for "
        'each token; or target:EXPRESSION, as "target:mean(exp(-norm2(x-y)))", to sample a formula.',
        show_default=False,
    ),
]
Per = Annotated[str | None, typer.Option("--per", help="Targets belong to each token or each set; default: by shape.")]
TaskOption = Annotated[
    str | None, typer.Option("--task", help="regression or classification; default: text and few integers are classes.")
]
SetColumn = Annotated[str, typer.Option("--set-column", help="Table: the column that names a token's set.")]
Features = Annotated[str | None, typer.Option("--features", help="Table: feature columns; default x, x0, x1, ….")]
Targets = Annotated[str | None, typer.Option("--targets", help="Table: target columns; default y, y0, y1, ….")]
SampledSets = Annotated[int, typer.Option("--sets", help="target: how many sets to sample.")]
SampledTokens = Annotated[int, typer.Option("--tokens", "-n", help="target: tokens in each set.")]
Dim = Annotated[int, typer.Option("--dim", "-d", help="target: coordinates per token.")]
BoxOption = Annotated[str | None, typer.Option("--box", help="target: domain, as -1:1 or 0:1,-2:2; default 0:1.")]


def reading(
    per: str | None,
    task: str | None,
    set_column: str,
    features: str | None,
    targets: str | None,
    sampling: Sampling,
) -> Reading:
    """The options as one value."""
    return Reading(per, task, set_column, _names(features), _names(targets), sampling)


def _names(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(name.strip() for name in text.split(","))
