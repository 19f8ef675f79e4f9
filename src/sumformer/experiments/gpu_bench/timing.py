"""Milliseconds and bytes of a call on a GPU: as launched, and replayed as a CUDA graph, which leaves launches out."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import torch


def milliseconds(call: Callable[[], object], repeats: int = 10, warm: int = 2) -> float:
    """Median of event times: `repeats` of them, short calls until 20 ms have passed on the device, at most 200."""
    for _ in range(warm):
        call()
    times: list[float] = []
    while len(times) < repeats or (sum(times) < 20 and len(times) < 200):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        call()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop))
        if sum(times) > 1500:
            break
    return median(times)


def replayed(call: Callable[[], object], repeats: int = 30) -> float | None:
    """The same for the captured graph; None where it cannot be captured."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            call()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
    except RuntimeError:
        torch.cuda.synchronize()
        return None
    return milliseconds(graph.replay, repeats)


def peak_bytes(call: Callable[[], object]) -> int:
    """What the call adds at its peak to what was held before it."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - held


def time_of(row: dict[str, Any], part: str) -> float | None:
    """The milliseconds of `part` in a row of results: replayed, or as launched where there is no graph."""
    time: float | None = row[f"{part}_graph_ms"] or row[f"{part}_ms"]
    return time
