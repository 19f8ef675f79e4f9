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

Change = Callable[[Any], None]


class Tampered:
    def __init__(self, original: Path, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(original, folder, dirs_exist_ok=True)

    def edit(self, name: str, change: Change) -> Tampered:
        path = self.folder / f"{name}.json"
        data = json.loads(path.read_text())
        change(data)
        path.write_text(json.dumps(data))
        return self.sign()

    def weights(self, change: Callable[[dict[str, np.ndarray]], None]) -> Tampered:
        path = self.folder / "model.safetensors"
        tensors = {k: v.copy() for k, v in load_file(path).items()}
        change(tensors)
        save_file(tensors, path)
        return self.sign()

    def sign(self) -> Tampered:
        path = self.folder / "certificate.json"
        data = json.loads(path.read_text())
        data["weights_sha256"] = sha256(self.folder / "model.safetensors")
        data["config_sha256"] = sha256(self.folder / "config.json")
        path.write_text(json.dumps(data))
        return self


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
