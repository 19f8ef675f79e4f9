"""Text that every machine with Python has: the sources of the standard library, as bytes."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sumformer.errors import InputError

SYMBOLS = 256


def standard_library(most: int) -> Tensor:
    """Up to `most` bytes of *.py files in order of their names, (bytes,) uint8."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    parts, size = [], 0
    for path in sorted(folder.glob("*.py")) + sorted(folder.glob("[a-z]*/*.py")):
        if "site-packages" in path.parts or "test" in path.parts:
            continue
        text = path.read_bytes()[: most - size]
        parts.append(text)
        size += len(text)
        if size >= most:
            break
    if not parts:
        raise InputError(f"reproduce alternatives: expected Python sources in {folder}, found none")
    return torch.from_numpy(np.frombuffer(b"".join(parts), dtype=np.uint8).copy())


def split(text: Tensor, share: float = 0.1) -> tuple[Tensor, Tensor]:
    """Training and held-out text: the last part is held out."""
    cut = int(len(text) * (1 - share))
    return text[:cut], text[cut:]


def windows(text: Tensor, count: int, n: int, generator: torch.Generator) -> Tensor:
    """`count` stretches of n bytes, (count, n) int64."""
    starts = torch.randint(len(text) - n, (count, 1), generator=generator, device=text.device)
    return text[starts + torch.arange(n, device=text.device)].long()
