"""Steps that each compile a kernel, the first time in threads: a first call waits for the slowest compiler alone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import torch

_known: set[Any] = set()


def side_by_side(key: Any, device: torch.device, steps: Callable[[], list[Callable[[], object]]]) -> None:
    """The first time for a key and device, each step in a thread of its own.

    Triton and what it calls let go of Python's lock. The steps run on the caller's stream. What a step would raise, the
    call itself raises; nothing happens while a graph is being captured.
    """
    if (key, device) in _known or device.type != "cuda" or torch.cuda.is_current_stream_capturing():
        return
    _known.add((key, device))
    stream = torch.cuda.current_stream(device)

    def run(step: Callable[[], object]) -> None:
        with suppress(Exception), torch.no_grad(), torch.cuda.stream(stream):
            torch.cuda.set_device(device)  # a thread of its own has none yet, and cuBLAS would say so
            step()

    with ThreadPoolExecutor() as pool:
        list(pool.map(run, steps()))
    torch.cuda.synchronize(device)
