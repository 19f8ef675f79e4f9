"""Does a network still hold the numbers that its certificate is about?"""

from __future__ import annotations

from hashlib import sha256

import torch
from torch import Tensor, nn


class KeptNumbers:
    """SHA-256 of the numbers; to see quickly that nothing happened, how often each was changed in place."""

    def __init__(self, network: nn.Module) -> None:
        self.dtypes, self.changes, self.digest = _dtypes(network), _changes(network), _digest(network)

    def converted(self, network: nn.Module) -> bool:
        return _dtypes(network) != self.dtypes

    def changed(self, network: nn.Module, *, thorough: bool) -> bool:
        """`thorough`: also where nothing says so, as behind `.data`."""
        changes = _changes(network)
        if not thorough and changes == self.changes:
            return False
        if _digest(network) != self.digest:
            return True
        self.changes = changes  # moved, copied, or loaded with the same numbers
        return False


def _tensors(network: nn.Module) -> list[Tensor]:
    return [*network.parameters(), *network.buffers()]


def _dtypes(network: nn.Module) -> tuple[torch.dtype, ...]:
    return tuple(t.dtype for t in _tensors(network))


def _changes(network: nn.Module) -> tuple[tuple[int, int], ...]:
    return tuple((t.data_ptr(), 0 if t.is_inference() else t._version) for t in _tensors(network))


def _digest(network: nn.Module) -> str:
    found = sha256()
    for name, t in (*network.named_parameters(), *network.named_buffers()):  # those that are not saved too
        found.update(f"{name} {t.dtype} {tuple(t.shape)}".encode())
        found.update(t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
