"""Numbers on a device that are 0, and are 0 again after the launch that counts in them: one at a time for each.

A stream has one: its launches do not overlap. Each launch that a graph holds has its own: runs of one graph do not
overlap, those of two may. Where a graph is captured before anything else ran, or after very many, it writes its own 0.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Lock

import torch
from torch import Tensor

from sumformer.kernels.launch import current_stream

_APART, _MOST = 8, 4096
"""Numbers lie in sectors of their own; so many are for graphs."""
_of_streams: dict[tuple[torch.device, int], Tensor] = {}
_for_graphs: dict[torch.device, tuple[Tensor, count[int]]] = {}
_lock = Lock()


def counter(device: torch.device) -> Tensor:
    """(1,) int32, for the next launch on the current stream."""
    if device.type != "cuda":
        return torch.zeros(1, dtype=torch.int32)
    if torch.cuda.is_current_stream_capturing():
        return _for_a_graph(device)
    place = device, current_stream(device)
    found = _of_streams.get(place)
    return _first(place) if found is None else found


def _first(place: tuple[torch.device, int]) -> Tensor:
    device, _ = place
    with _lock:
        if device not in _for_graphs:
            _for_graphs[device] = _zeros(device, _APART * _MOST), count()
        if place not in _of_streams:
            _of_streams[place] = _zeros(device, 1)
        return _of_streams[place]


def _for_a_graph(device: torch.device) -> Tensor:
    numbers, free = _for_graphs.get(device, (None, count()))
    place = next(free)
    if numbers is None or place >= _MOST:
        return torch.zeros(1, dtype=torch.int32, device=device)
    return numbers[_APART * place : _APART * place + 1]


def _zeros(device: torch.device, size: int) -> Tensor:
    """Made in a thread: this one's memory may be lent by a pool, which takes it back."""

    def make() -> Tensor:
        made = torch.zeros(size, dtype=torch.int32, device=device)
        torch.cuda.synchronize(device)
        return made

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(make).result()
