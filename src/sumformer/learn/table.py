"""A row for each token: its set, features, targets → lists of arrays, a set for each value of the set column.

The columns are `set`, then x, x0, x1, … for features and y, y0, y1, … for targets, unless they are named. Files are
.parquet or .csv, the latter with a first line of names.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sumformer.errors import FileFormatError, InputError, MissingDependencyError
from sumformer.learn.sets import Columns

TABLES = (".parquet", ".csv")
# Kinds of numpy's dtypes that a column may have: as a feature, as a target, as the names of sets.
NUMBERS, LABELS, NAMES = "fiub", "fiubU", "fiubUSOMm"


def arrays_of(path: Path, asked: Columns, per: str | None, with_targets: bool) -> dict[str, Any]:
    """x, y and the `columns` they are; `per` "set" where every set's rows repeat one target, unless it says otherwise.

    Names that are not given in `asked` are found.
    """
    table = read_table(path)
    found = _named(path, table, asked, with_targets)
    if not table.num_rows:
        raise FileFormatError(path, "has no rows")
    order, starts = set_order(path, table, found.set)
    x = np.split(_values(path, table, found.features, NUMBERS)[order], starts[1:])
    if not found.targets:
        return {"x": x, "columns": found}
    values = _values(path, table, found.targets, LABELS)[order]
    y = np.split(values[:, 0] if len(found.targets) == 1 else values, starts[1:])
    repeated = any(len(a) > 1 for a in y) and all((a == a[:1]).all() for a in y)
    if per == "set" and not repeated and any(len(a) > 1 for a in y):
        raise FileFormatError(path, "the targets differ within a set; they cannot be read as one for each set")
    if per == "set" or (per is None and repeated):
        return {"x": x, "y": np.stack([a[0] for a in y]), "per": "set", "columns": found}
    return {"x": x, "y": y, "per": "token", "columns": found}


def _named(path: Path, table: Any, asked: Columns, with_targets: bool) -> Columns:
    names = list(table.column_names)
    x_names = list(asked.features) or [n for n in _numbered(names, "x") if n not in (asked.set, *asked.targets)]
    y_names = list(asked.targets) or [n for n in _numbered(names, "y") if n not in (asked.set, *x_names)]
    y_names = y_names if with_targets else []
    missing = [name for name in (asked.set, *x_names, *y_names) if name not in names]
    if missing or not x_names:
        wanted = f"missing {', '.join(missing)}" if missing else "no feature columns x, x0, x1, …"
        raise FileFormatError(path, f"{wanted}; {_there(names)}; --set-column, --features and --targets name others")
    used = [asked.set, *x_names, *y_names]
    same = [name for name in used if names.count(name) > 1]
    if same:
        raise FileFormatError(path, f"has more than one column {same[0]}; rename one of them")
    twice = [name for name in used if used.count(name) > 1]
    if twice:
        raise InputError(f"{path}: column {twice[0]} can be the set, a feature or a target, and that once")
    return Columns(asked.set, tuple(x_names), tuple(y_names))


def _there(names: Sequence[str]) -> str:
    """The columns, in quotes where a blank would not be seen."""
    separator = next((s for s in (";", "\t", "|") if len(names) == 1 and s in names[0]), None)
    if separator is not None:
        return f"the columns are separated by {separator!r}, where a comma is expected"
    return f"the columns are {', '.join(repr(n) if n != n.strip() else n for n in names)}"


def read_table(path: Path) -> Any:
    pyarrow = _pyarrow()
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet

    try:
        table = parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)
        _ = table.column_names  # decoded only now
        return table
    except UnicodeDecodeError:
        raise FileFormatError(path, "has names of columns that are not UTF-8; save the file as UTF-8") from None
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise FileFormatError(path, f"is truncated or not a {path.suffix[1:]} file ({error})") from None


def with_columns(path: Path, new: Mapping[str, Any], set_column: str, per_token: bool, suffix: str) -> bytes:
    """The table of `path` with `new` columns, as a file ending in `suffix`; they have a row for each token, or set."""
    pyarrow = _pyarrow()
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet

    table = read_table(path)
    order, starts = set_order(path, table, set_column)
    out = table.drop_columns([name for name in new if name in table.column_names])
    for name, values in new.items():
        rows = values if per_token else np.repeat(values, np.diff([*starts, table.num_rows]))
        in_file = np.empty_like(rows)
        in_file[order] = rows
        out = out.append_column(name, pyarrow.array(in_file))
    sink = io.BytesIO()
    parquet.write_table(out, sink) if suffix == ".parquet" else csv.write_csv(out, sink)
    return sink.getvalue()


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingDependencyError("pyarrow", "reading and writing .parquet and .csv", "parquet") from None
    return pyarrow


def set_order(path: Path, table: Any, set_column: str) -> tuple[Any, Any]:
    """Rows by set, sets in order of their first row, rows of a set in the order of the file; where each set starts."""
    names = _values(path, table, [set_column], NAMES)[:, 0]
    if names.dtype.kind == "f" and np.isnan(names).any():
        raise _missing(path, set_column, np.isnan(names))
    _, first, place = np.unique(names, return_index=True, return_inverse=True)
    rank = np.empty_like(first)
    rank[np.argsort(first)] = np.arange(len(first))
    order = np.argsort(rank[place], kind="stable")
    return order, np.searchsorted(rank[place][order], np.arange(len(first)))


def _numbered(names: Sequence[str], letter: str) -> list[str]:
    """x, x0, x1, … x10 in the order of their numbers."""
    found = [(int(m.group(1) or -1), name) for name in names if (m := re.fullmatch(rf"{letter}_?([0-9]*)", name))]
    return [name for _, name in sorted(found)]


def _values(path: Path, table: Any, names: Sequence[str], kinds: str) -> Any:
    """(rows, columns) of one dtype."""
    return np.stack([_column(path, name, table[name], kinds) for name in names], axis=1)


def _column(path: Path, name: str, column: Any, kinds: str) -> Any:
    """As an array of one of `kinds`, with no value missing; text of a .csv is missing where it is empty."""
    import pyarrow.types as types

    if column.null_count:
        raise _missing(path, name, np.asarray(column.is_null()))
    if path.suffix == ".csv" and types.is_binary(column.type):
        raise FileFormatError(path, f"column {name} is not UTF-8; save the file as UTF-8")
    array = _plain(column)
    if array.dtype.kind not in kinds or types.is_nested(column.type):
        expected = "real numbers" if kinds == NUMBERS else "numbers or text"
        raise FileFormatError(path, f"column {name}: expected {expected}, got {column.type}")
    if path.suffix == ".csv" and array.dtype.kind == "U" and (array == "").any():
        raise _missing(path, name, array == "")
    return array


def _missing(path: Path, name: str, where: Any) -> FileFormatError:
    """Rows are counted from 1, without the line of names."""
    count = int(where.sum())
    others = f" and {count - 1} more" if count > 1 else ""
    return FileFormatError(
        path, f"column {name} has missing values: row {int(where.argmax()) + 1} below the names{others}"
    )


def _plain(column: Any) -> Any:
    """As an array; text as text, not as objects."""
    array = np.asarray(column.to_pylist() if str(column.type).startswith("dictionary") else column)
    return array.astype(str) if array.dtype == object and all(isinstance(v, str) for v in array) else array
