"""--device: cpu, or cuda where there is one."""

from __future__ import annotations

from typing import Annotated

import typer

from sumformer.errors import InputError

Device = Annotated[str, typer.Option("--device", help="cpu or cuda.")]


def check_device(device: str) -> None:
    """Refuse what is not there."""
    import torch

    if device not in ("cpu", "cuda"):
        raise InputError(f"--device: expected cpu or cuda, got {device!r}")
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: torch finds no CUDA device on this machine; --device cpu runs without one")
