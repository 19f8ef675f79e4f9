"""What an experiment found: numbers as JSON and CSV, the comparison in words, and what the paper leaves unsaid."""

from __future__ import annotations

import csv
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from sumformer.errors import FileFormatError


@dataclass(frozen=True)
class Outcome:
    """`data` is everything the picture needs; `rows` the same as a flat table; `findings` what is printed.

    `command` makes it again; `seconds` is None where they were not kept.
    """

    name: str
    config: Mapping[str, Any]
    data: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...]
    findings: tuple[str, ...]
    unsaid: tuple[str, ...]
    seconds: float | None
    machine: str
    command: str = ""

    def write(self, folder: Path) -> None:
        """NAME.json and NAME.csv, numbers to six digits."""
        folder.mkdir(parents=True, exist_ok=True)
        data = {key: value for key, value in asdict(self).items() if key != "rows"}
        text = json.dumps(_short(data), indent=1, ensure_ascii=False)
        (folder / f"{self.name}.json").write_text(text + "\n", encoding="utf-8")
        columns = list(dict.fromkeys(key for row in self.rows for key in row))
        with (folder / f"{self.name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(_short(list(self.rows)))

    @staticmethod
    def read(path: Path) -> Outcome:
        """An outcome written by `write`, to draw it again; its rows stay in the CSV."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            data |= {key: tuple(data[key]) for key in ("findings", "unsaid")}
            return Outcome(**data, rows=())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FileFormatError(path, f"is not an experiment's outcome ({error})") from error


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: _short(item) for key, item in value.items()}
    return [_short(item) for item in value] if isinstance(value, list | tuple) else value


def machine(device: str) -> str:
    """Where it was run, in one line."""
    name = torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} CPU threads"
    return f"{name}, torch {torch.__version__}, Python {platform.python_version()}"
