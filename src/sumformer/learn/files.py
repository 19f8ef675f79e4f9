"""Files that are whole or not there: written beside their place, flushed to the disk, then renamed into it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sumformer.errors import FileFormatError


def write_bytes(path: Path, data: bytes) -> None:
    """Replace `path` by `data`. Whatever fails, wherever the process is killed, the old or the new file is there."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(unfinished, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
    _flush_folder(path.parent)


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """A JSON object; numbers read back as the same numbers."""
    write_bytes(path, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode("utf-8"))


def read_json(path: Path, what: str) -> dict[str, Any]:
    """The JSON object in `path`, or a `FileFormatError` that says `what` was expected."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileFormatError(path, f"no such file; expected {what}") from None
    except (ValueError, RecursionError) as error:
        raise FileFormatError(path, f"is not readable JSON ({error}); expected {what}") from None
    if not isinstance(data, dict):
        raise FileFormatError(path, f"expected {what}, got a JSON {type(data).__name__}")
    return data


def remove_unfinished(folder: Path) -> None:
    """What a killed process left half-written."""
    for path in folder.glob(".*.part"):
        with contextlib.suppress(OSError):
            path.unlink()


def _flush_folder(folder: Path) -> None:
    """The renaming itself, where the system can flush a folder."""
    with contextlib.suppress(OSError, AttributeError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
