"""`python -m sumformer.experiments.bench.memory NAME BATCH N …`: bytes that one forward + backward adds to the resident
set, a line for each n, in a process of its own.

Stops before an n whose step would not fit in `LIMIT` bytes, by the growth between the last two, or would take longer
than `SECONDS`. Linux only: elsewhere the kernel does not tell the peak of a part of a run.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from sumformer.experiments.bench.contestants import CONTESTANTS, Contestant, Shape

LIMIT = 16 * 2**30
SECONDS = 20.0


def peaks(contestant: Contestant, batch: int, lengths: Sequence[int], shape: Shape) -> Iterator[tuple[int, int]]:
    """(n, bytes) for each n as far as it goes; parameters and input are not counted."""
    _step_peak(contestant, 1, min(lengths), shape)  # loads libraries and thread pools
    before: int | None = None
    for n in lengths:
        start = time.perf_counter()
        peak = _step_peak(contestant, batch, n, shape)
        yield n, peak
        growth = 2.0 if before is None else max(2.0, peak / max(before, 1))
        before = peak
        if peak * growth > LIMIT or time.perf_counter() - start > SECONDS:
            return


def _step_peak(contestant: Contestant, batch: int, n: int, shape: Shape) -> int:
    module = contestant.build(shape, n).eval()
    x = torch.randn(batch, n, shape.d, requires_grad=True)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what is free goes back, so that using it again is counted
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew from here
    before = _status("VmRSS")
    module(x).sum().backward()
    return max(0, _status("VmHWM") - before)


def _status(field: str) -> int:
    """A size from /proc/self/status, in bytes."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


def main(name: str, batch: str, *lengths: str) -> None:
    (contestant,) = (c for c in CONTESTANTS if c.name == name)
    for n, peak in peaks(contestant, int(batch), [int(n) for n in lengths], Shape()):
        print(n, peak, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
