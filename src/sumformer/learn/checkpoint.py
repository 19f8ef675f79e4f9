"""`checkpoint.safetensors`: one file with the whole state, replaced in one step; no pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from sumformer.errors import FileFormatError, TrainingError
from sumformer.learn.files import write_bytes
from sumformer.learn.state import State
from sumformer.nn.pretrained import safetensors_torch

CHECKPOINT_FILE = "checkpoint.safetensors"
FORMAT = 1


def write_checkpoint(folder: Path, state: State, identity: dict[str, Any]) -> None:
    """A failure (a full disk) leaves the checkpoint before it in place and says so."""
    data = {"format": FORMAT, "identity": identity, "state": state.numbers()}
    content = safetensors_torch().save(state.tensors(), metadata={"sumformer": json.dumps(data)})
    path = folder / CHECKPOINT_FILE
    try:
        write_bytes(path, content)
    except OSError as error:
        kept = "the checkpoint before it is kept" if path.exists() else "there is none before it"
        raise TrainingError(
            f"cannot write {path} at epoch {state.epoch}: {error.strerror or error}; {kept}. "
            "Make room and continue with --resume"
        ) from error


def read_checkpoint(folder: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Tensor]] | None:
    """(identity, numbers, tensors) of the last checkpoint, or None where there is none yet."""
    path = folder / CHECKPOINT_FILE
    if not path.exists():
        return None
    safetensors_torch()
    from safetensors import safe_open

    try:
        with safe_open(path, framework="pt") as file:
            data = json.loads(file.metadata()["sumformer"])
            # Copied into memory of torch's own alignment: a matrix product may round differently without it.
            tensors = {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118
        if data["format"] != FORMAT:
            raise FileFormatError(path, f"has format {data['format']}, expected {FORMAT}")
        return data["identity"], data["state"], tensors
    except FileFormatError:
        raise
    except Exception as error:  # safetensors raises its own type for truncated and foreign files
        raise FileFormatError(path, f"is damaged ({error}); remove it to train from the beginning") from None
