"""Predictions in the format of the data: key `y` in .npz and .safetensors, columns y, y0, y1, … in .parquet."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from sumformer.errors import InputError, MissingDependencyError, NotSupportedError
from sumformer.learn.files import write_bytes
from sumformer.learn.parquet import numbered, parquet_table, set_order
from sumformer.learn.reading import FORMATS, Reading

Array = np.ndarray[Any, np.dtype[Any]]


def write_predictions(path: Path, y: Array, keep: Array, source: str | Path, how: Reading, per_token: bool) -> None:
    """y (N, …) or (N, n, …) with `keep` (N, n); a parquet file repeats its source's rows beside the predictions."""
    if path.suffix not in FORMATS:
        raise InputError(f"{path}: expected a file ending in {', '.join(FORMATS)}")
    if path.suffix == ".parquet":
        data = _parquet(Path(source), y, keep, how, per_token)
    elif path.suffix == ".npz":
        buffer = io.BytesIO()
        np.savez(buffer, y=y)
        data = buffer.getvalue()
    else:
        data = _safetensors(path, y)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, data)


def _safetensors(path: Path, y: Array) -> bytes:
    if y.dtype.kind not in "fiub":
        raise NotSupportedError(f"{path}: safetensors has no text; write labels as .npz")
    try:
        from safetensors.numpy import save
    except ImportError:
        raise MissingDependencyError("safetensors", "writing .safetensors", "all") from None
    return bytes(save({"y": np.ascontiguousarray(y)}))


def _parquet(source: Path, y: Array, keep: Array, how: Reading, per_token: bool) -> bytes:
    if source.suffix != ".parquet":
        raise NotSupportedError("predictions as .parquet need .parquet data, whose rows they follow; write .npz")
    table = parquet_table(source)
    import pyarrow as pa
    import pyarrow.parquet as pq

    order, starts = set_order(table, how.set_column)
    counts = np.diff([*starts, table.num_rows])
    rows = y[keep] if per_token else np.repeat(y, counts, axis=0)
    in_file = np.empty_like(rows)
    in_file[order] = rows
    old = list(how.targets) or numbered(table.column_names, "y")
    names = old or (["y"] if rows.ndim == 1 else [f"y{k}" for k in range(rows.shape[1])])
    out = table.drop_columns([name for name in old if name in table.column_names])
    for k, name in enumerate(names):
        out = out.append_column(name, pa.array(in_file if rows.ndim == 1 else in_file[:, k]))
    sink = pa.BufferOutputStream()
    pq.write_table(out, sink)
    return bytes(sink.getvalue())
