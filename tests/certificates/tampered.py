"""A copy of a saved construction that can be edited; hashes are rewritten, so that only the proof can object."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from sumformer.certificates.certificate import sha256
from sumformer.certificates.checker import check
from sumformer.errors import FileFormatError

Change = Callable[[Any], None]
Sample = tuple[str, float, dict[str, Any]]  # source, ε, options of construct
Samples = Callable[[str], Path]


class Tampered:
    def __init__(self, original: Path, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(original, folder, dirs_exist_ok=True)

    def edit(self, name: str, change: Change) -> Tampered:
        rewrite(self.folder / f"{name}.json", change)
        return self.sign()

    def weights(self, change: Callable[[dict[str, np.ndarray]], None]) -> Tampered:
        path = self.folder / "model.safetensors"
        tensors = {k: v.copy() for k, v in load_file(path).items()}
        change(tensors)
        save_file(tensors, path)
        return self.sign()

    def sign(self) -> Tampered:
        sign(self.folder)
        return self


def rewrite(path: Path, change: Change) -> None:
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def sign(folder: Path) -> Path:
    """Write the hashes of the files as they are."""
    hashes = {"weights_sha256": sha256(folder / "model.safetensors"), "config_sha256": sha256(folder / "config.json")}
    rewrite(folder / "certificate.json", lambda certificate: certificate.update(hashes))
    return folder


Copy = Callable[[str], Tampered]


def accepted(folder: Path) -> bool:
    """Files that cannot be read are not."""
    try:
        return check(folder).verified
    except FileFormatError:
        return False


def put(*path: Any) -> Callable[[Any], Change]:
    """put("a", 0)(value): data["a"][0] = value; a function of the old value is applied to it."""

    def with_value(value: Any) -> Change:
        def change(data: Any) -> None:
            for key in path[:-1]:
                data = data[key]
            old = data[path[-1]]
            data[path[-1]] = value(old) if callable(value) else value

        return change

    return with_value


def halve(old: float) -> float:
    return old / 2


def shift(name: str, by: float) -> Callable[[dict[str, np.ndarray]], None]:
    """The last entry of a tensor, moved."""

    def change(tensors: dict[str, np.ndarray]) -> None:
        tensors[name][-1] += by

    return change
