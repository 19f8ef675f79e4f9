"""`sumformer predict DIR DATA --out FILE`: predictions of a trained network, in the format of the data, key `y`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sumformer.cli import learning
from sumformer.cli.output import Json, command, console, print_json
from sumformer.errors import InputError
from sumformer.learn.fitted import load_fitted
from sumformer.learn.reading import read
from sumformer.learn.sampling import Sampling
from sumformer.learn.writing import write_predictions

FittedFolder = Annotated[Path, typer.Argument(help="The folder `sumformer fit` wrote.", show_default=False)]
Out = Annotated[Path, typer.Option("--out", "-o", help="FILE.npz, .safetensors, or .parquet for parquet data.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace FILE if it is there already.")]


@command
def predict(
    folder: FittedFolder,
    data: learning.Data,
    out: Out,
    overwrite: Overwrite = False,
    set_column: learning.SetColumn = "set",
    features: learning.Features = None,
    targets: learning.Targets = None,
    sets: learning.SampledSets = 1000,
    tokens: learning.SampledTokens = 10,
    dim: learning.Dim = 1,
    box: learning.BoxOption = None,
    as_json: Json = False,
) -> None:
    """Predict targets for DATA with the network in FOLDER; targets in DATA are not looked at."""
    if out.exists() and not overwrite:
        raise InputError(f"{out} is there already: --overwrite replaces it, or give another --out")
    how = learning.reading(None, None, set_column, features, targets, Sampling(sets, tokens, dim, box))
    fitted, inputs = load_fitted(folder), read(data, how, targets=False)
    y = fitted.predict(inputs)
    write_predictions(out, y, inputs.keep.numpy(), data, how, fitted.task.per_token)
    if as_json:
        print_json({"out": str(out), "sets": len(inputs), "shape": list(y.shape), "task": fitted.task.describe()})
    else:
        console.print(f"{len(inputs)} sets, y of shape {tuple(y.shape)}, written to {out}")
