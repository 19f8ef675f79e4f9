"""Where a command may write, asked before its work: a folder, or a picture in one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sumformer.errors import InputError

PICTURES = (".png", ".svg", ".pdf")


def make_folder(folder: Path | None, files: Sequence[str] = (), overwrite: bool = False) -> None:
    """The folder is there afterwards; of `files`, which will be written, it holds none, unless they may be replaced."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder")
    there = [name for name in files if (folder / name).exists()]
    if there and not overwrite:
        raise InputError(f"{folder} holds {', '.join(there)} already: --overwrite replaces it, or give another --out")
    folder.mkdir(parents=True, exist_ok=True)


def check_picture(path: Path | None) -> None:
    """A name that says the format, in a folder that is there."""
    if path is None:
        return
    if path.suffix.lower() not in PICTURES or path.is_dir():
        raise InputError(f"{path}: expected the name of a picture, ending in {', '.join(PICTURES)}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
