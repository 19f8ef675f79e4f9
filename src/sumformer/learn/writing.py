"""Predictions in the format of the data: key `y` in .npz and .safetensors, columns beside its own in a table.

With `y` goes `mask` where sets have padding (1 = a real token), and `x` where the sets were sampled and are in no file.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sumformer.errors import InputError, MissingDependencyError, NotSupportedError
from sumformer.learn.files import write_bytes
from sumformer.learn.reading import FORMATS
from sumformer.learn.sampling import PREFIX
from sumformer.learn.sets import Columns, Sets, Task
from sumformer.learn.table import TABLES, with_columns

Array = np.ndarray[Any, np.dtype[Any]]


def check_place(path: Path, source: str | Path) -> None:
    """Refuse what `write_predictions` could not write, before there is anything to lose."""
    if path.suffix not in FORMATS:
        raise InputError(f"{path}: expected a file ending in {', '.join(FORMATS)}")
    if path.suffix in TABLES and Path(source).suffix not in TABLES:
        kinds = " or ".join(TABLES)
        raise NotSupportedError(f"predictions as {path.suffix} need {kinds} data, whose rows they follow; write .npz")


def column_names(task: Task, asked: Sequence[str], trained: Columns | None, used: Columns) -> tuple[str, ...]:
    """Those asked for, those of the targets trained on, or y, y0, y1, …: never a column that is read."""
    count = task.k
    default = ("y",) if task.flat else tuple(f"y{k}" for k in range(count))
    names = tuple(asked) or (trained.targets if trained is not None and trained.targets else default)
    if len(names) != count:
        raise InputError(f"expected {count} names of columns for the outputs of the network, got {', '.join(names)}")
    taken = [name for name in names if name in (used.set, *used.features)]
    if taken:
        raise InputError(
            f"column {taken[0]} is read; name the predictions otherwise, as --targets {taken[0]}_predicted"
        )
    return names


def probability_names(task: Task, names: Sequence[str], used: Columns) -> tuple[str, ...]:
    """p_label of each class: never a column that is read, nor one of the predictions, which are called `names`."""
    wanted = tuple(f"p_{label}" for label in task.classes or ())
    read = [name for name in wanted if name in (used.set, *used.features)]
    if read:
        raise InputError(f"column {read[0]} is read; probabilities cannot take its place: write them as .npz")
    twice = [name for name in wanted if name in names]
    if twice:
        raise InputError(f"column {twice[0]} is for probabilities; name the predictions otherwise, as --targets label")
    return wanted


def write_predictions(
    path: Path,
    y: Array,
    sets: Sets,
    source: str | Path,
    task: Task,
    names: Sequence[str] = (),
    probabilities: Array | None = None,
) -> None:
    """y (N, …) or (N, n, …) of `sets`; a table repeats the rows of `source` beside the predictions, called `names`.

    Probabilities of the classes, which are the last axis, go to `p`, of a table to columns p_label.
    """
    check_place(path, source)
    if path.suffix in TABLES:
        if sets.columns is None:
            raise InputError(f"{path}: expected sets that were read from a table")
        lead = sets.keep.numpy() if task.per_token else slice(None)
        outputs = y if y.ndim > 1 + task.per_token else y[..., None]
        new = {name: outputs[lead][:, k] for k, name in enumerate(names)}
        if probabilities is not None:
            of_classes = probability_names(task, names, sets.columns)
            new |= {name: probabilities[lead][:, k] for k, name in enumerate(of_classes)}
        data = with_columns(Path(source), new, sets.columns.set, task.per_token, path.suffix)
    else:
        arrays = {"y": y} | ({} if probabilities is None else {"p": probabilities})
        arrays |= {} if sets.mask() is None else {"mask": sets.keep.numpy()}
        arrays |= {"x": sets.x.numpy()} if str(source).startswith(PREFIX) else {}
        data = _npz(arrays) if path.suffix == ".npz" else _safetensors(path, arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, data)


def _npz(arrays: Mapping[str, Array]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _safetensors(path: Path, arrays: Mapping[str, Array]) -> bytes:
    if any(array.dtype.kind not in "fiub" for array in arrays.values()):
        raise NotSupportedError(f"{path}: safetensors has no text; write labels as .npz")
    try:
        from safetensors.numpy import save
    except ImportError:
        raise MissingDependencyError("safetensors", "writing .safetensors", "all") from None
    return bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))
