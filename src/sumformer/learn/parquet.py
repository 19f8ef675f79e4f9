"""A row for each token: its set, features, targets → lists of arrays, a set for each value of the set column.

The columns are `set`, then x, x0, x1, … for features and y, y0, y1, … for targets, unless they are named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sumformer.errors import FileFormatError, MissingDependencyError


def read_parquet(
    path: Path, set_column: str, features: Sequence[str], targets: Sequence[str], per: str | None
) -> dict[str, Any]:
    """x and y, and `per` "set" where every set's rows repeat one target (unless `per` says otherwise)."""
    table = parquet_table(path)
    names = list(table.column_names)
    x_names, y_names = list(features) or numbered(names, "x"), list(targets) or numbered(names, "y")
    missing = [name for name in (set_column, *x_names, *y_names) if name not in names]
    if missing or not x_names:
        wanted = f"missing {', '.join(missing)}" if missing else "no feature columns x, x0, x1, …"
        raise FileFormatError(path, f"{wanted}; the columns are {', '.join(names)}; name them if they are others")
    if not table.num_rows:
        raise FileFormatError(path, "has no rows")
    order, starts = set_order(table, set_column)
    x = np.split(columns(path, table, x_names)[order], starts[1:])
    if not y_names:
        return {"x": x}
    values = columns(path, table, y_names)[order]
    y = np.split(values[:, 0] if len(y_names) == 1 else values, starts[1:])
    repeated = any(len(a) > 1 for a in y) and all((a == a[:1]).all() for a in y)
    if per == "set" and not repeated and any(len(a) > 1 for a in y):
        raise FileFormatError(path, "the targets differ within a set; they cannot be read as one for each set")
    if per == "set" or (per is None and repeated):
        return {"x": x, "y": np.stack([a[0] for a in y]), "per": "set"}
    return {"x": x, "y": y, "per": "token"}


def parquet_table(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingDependencyError("pyarrow", "reading and writing .parquet", "parquet") from None
    try:
        return pq.read_table(path)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise FileFormatError(path, f"is truncated or not a parquet file ({error})") from None


def set_order(table: Any, set_column: str) -> tuple[Any, Any]:
    """Rows by set, sets in order of their first row, rows of a set in the order of the file; where each set starts."""
    _, first, place = np.unique(np.asarray(table[set_column]), return_index=True, return_inverse=True)
    rank = np.empty_like(first)
    rank[np.argsort(first)] = np.arange(len(first))
    order = np.argsort(rank[place], kind="stable")
    return order, np.searchsorted(rank[place][order], np.arange(len(first)))


def numbered(names: Sequence[str], letter: str) -> list[str]:
    """x, x0, x1, … x10 in the order of their numbers."""
    found = [(int(m.group(1) or -1), name) for name in names if (m := re.fullmatch(rf"{letter}_?([0-9]*)", name))]
    return [name for _, name in sorted(found)]


def columns(path: Path, table: Any, names: Sequence[str]) -> Any:
    """(rows, columns) of one dtype; a missing value is refused."""
    nulls = [name for name in names if table[name].null_count]
    if nulls:
        raise FileFormatError(path, f"column {nulls[0]} has missing values")
    return np.stack([np.asarray(table[name]) for name in names], axis=1)
