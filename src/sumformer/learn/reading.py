"""DATA → `Sets`: .npz, .safetensors, .parquet, .csv, or target:EXPRESSION to sample a formula."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sumformer.errors import FileFormatError, InputError, MissingDependencyError
from sumformer.learn.arrays import sets_from_arrays
from sumformer.learn.sampling import PREFIX, Sampling, sample
from sumformer.learn.sets import Columns, Sets
from sumformer.learn.table import TABLES, arrays_of

FORMATS = (".npz", ".safetensors", *TABLES)
KEYS = ("x", "y", "mask", "lengths")


@dataclass(frozen=True)
class Reading:
    """What a file leaves open: `per` token or set, `task`, names of columns of a table, how to sample a formula."""

    per: str | None = None
    task: str | None = None
    set_column: str = "set"
    features: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)

    @property
    def columns(self) -> Columns:
        return Columns(self.set_column, self.features, self.targets)


def read(source: str | Path, reading: Reading | None = None, targets: bool = True) -> Sets:
    """The sets in `source`; with `targets` False, a file without them will do."""
    how = reading or Reading()
    text = str(source)
    if text.startswith(PREFIX):
        return sample(text.removeprefix(PREFIX), how.sampling)
    arrays = read_arrays(Path(text), how, targets)
    if targets and "y" not in arrays:
        raise FileFormatError(text, f"has no targets: expected y beside x, found {', '.join(sorted(arrays))}")
    y = arrays["y"] if targets else None
    masks = {key: arrays[key] for key in ("mask", "lengths") if key in arrays}
    sets = sets_from_arrays(arrays["x"], y, **masks, per=arrays.get("per", how.per), task=how.task, where=text)
    return replace(sets, columns=arrays.get("columns"))


def read_arrays(path: Path, how: Reading, targets: bool = True) -> Mapping[str, Any]:
    """x and, where they are there, y, mask and lengths."""
    if path.suffix not in FORMATS:
        raise InputError(f"{path}: expected a file ending in {', '.join(FORMATS)}, or {PREFIX}EXPRESSION")
    if not path.is_file():
        raise FileFormatError(path, "no such file")
    if path.suffix in TABLES:
        return arrays_of(path, how.columns, how.per, targets)
    if how.columns != Reading().columns:
        raise InputError(f"{path}: names of columns are for tables ({', '.join(TABLES)}); here arrays are x and y")
    arrays = _npz(path) if path.suffix == ".npz" else _safetensors(path)
    if "x" not in arrays:
        found = ", ".join(sorted(arrays)) or "nothing"
        raise FileFormatError(path, f"expected x (and y; mask or lengths) among the names of its arrays, found {found}")
    return {key: array for key, array in arrays.items() if key in KEYS}


def _npz(path: Path) -> dict[str, Any]:
    try:
        with open(path, "rb") as stream:
            file = np.load(stream, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("one array, without names")
            return {key: _member(path, file, key) if key in KEYS else None for key in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        if "pickle" in str(error):  # neither a zip nor an array: numpy would unpickle it
            raise FileFormatError(path, "is truncated or not an .npz file, as np.savez writes") from None
        raise FileFormatError(path, f"is truncated or not an .npz file of plain arrays ({error})") from None
    except Exception as error:  # zlib.error and the like: damage inside the archive
        raise FileFormatError(path, f"is damaged ({error})") from None


def _member(path: Path, file: Any, key: str) -> Any:
    try:
        return file[key]
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        instead = "labels as text, y.astype(str)" if key == "y" else "sets of several sizes padded, with lengths"
        raise FileFormatError(path, f"{key} is an array of Python objects; save {instead}") from None


def _safetensors(path: Path) -> dict[str, Any]:
    try:
        from safetensors.torch import load_file
    except ImportError:
        raise MissingDependencyError("safetensors", "reading .safetensors", "all") from None
    try:
        tensors = load_file(path)
    except Exception as error:  # safetensors raises its own type for truncated and foreign files
        raise FileFormatError(path, f"is truncated or not a safetensors file ({error})") from None
    half = {key: t.float() if t.is_floating_point() and t.itemsize < 4 else t for key, t in tensors.items()}
    return {key: t.numpy() if key in KEYS else None for key, t in half.items()}
