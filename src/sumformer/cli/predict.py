"""`sumformer predict DIR DATA --out FILE`: predictions of a trained network, in the format of the data, key `y`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from sumformer.cli import learning
from sumformer.cli.output import Json, command, console, print_json
from sumformer.errors import InputError
from sumformer.learn.fitted import load_fitted
from sumformer.learn.reading import Reading, read
from sumformer.learn.sampling import Sampling
from sumformer.learn.sets import Columns
from sumformer.learn.table import TABLES
from sumformer.learn.writing import check_place, column_names, write_predictions

FittedFolder = Annotated[Path, typer.Argument(help="The folder `sumformer fit` wrote.", show_default=False)]
Out = Annotated[Path, typer.Option("--out", "-o", help="FILE.npz, .safetensors; .parquet or .csv for such data.")]
SetColumn = Annotated[
    str | None, typer.Option("--set-column", help="Table: the column that names a token's set; default: as trained.")
]
Features = Annotated[str | None, typer.Option("--features", help="Table: feature columns; default: as trained.")]
Targets = Annotated[str | None, typer.Option("--targets", help="Table: columns to write to; default: as trained.")]
Probabilities = Annotated[
    bool, typer.Option("--probabilities", help="Those of all classes too: key p, columns p_LABEL of a table.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace FILE if it is there already.")]


@command
def predict(
    folder: FittedFolder,
    data: learning.Data,
    out: Out,
    overwrite: Overwrite = False,
    set_column: SetColumn = None,
    features: Features = None,
    targets: Targets = None,
    probabilities: Probabilities = False,
    sets: learning.SampledSets = 1000,
    tokens: learning.SampledTokens = 10,
    dim: learning.Dim = 1,
    box: learning.BoxOption = None,
    as_json: Json = False,
) -> None:
    """Predict targets for DATA with the network in FOLDER; targets in DATA are not looked at."""
    if out.exists() and not overwrite:
        raise InputError(f"{out} is there already: --overwrite replaces it, or give another --out")
    check_place(out, data)
    fitted = load_fitted(folder)
    trained = fitted.columns if Path(data).suffix in TABLES else None
    asked = learning.reading(None, None, set_column or "set", features, targets, Sampling(sets, tokens, dim, box))
    inputs = read(data, _as_trained(trained, set_column, asked), targets=False)
    names = () if inputs.columns is None else column_names(fitted.task, asked.targets, trained, inputs.columns)
    y, p = fitted.predict(inputs), fitted.probabilities(inputs) if probabilities else None
    write_predictions(out, y, inputs, data, fitted.task, names, p)
    if as_json:
        print_json({"out": str(out), "sets": len(inputs), "shape": list(y.shape), "task": fitted.task.describe()})
    else:
        console.print(f"{len(inputs)} sets, y of shape {tuple(y.shape)}, written to {out}", markup=False)


def _as_trained(trained: Columns | None, set_column: str | None, asked: Reading) -> Reading:
    """The columns that were trained on, unless others are named; the same in another order are a mistake."""
    how = replace(asked, targets=())  # those are written, not read
    if trained is None:
        return how
    features = asked.features or trained.features
    if features != trained.features and sorted(features) == sorted(trained.features):
        order = ", ".join(trained.features)
        raise InputError(f"--features: the network was trained on {order}, in this order; leave the option out")
    return replace(how, set_column=set_column or trained.set, features=features)
