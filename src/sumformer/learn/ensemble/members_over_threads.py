"""Members in blocks, blocks over threads: a small product gains more from its own thread than from several at once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import torch

TOGETHER = 2**18  # numbers in a hidden layer of a block: enough to hide the cost of a call, few enough for the cache


def slices(members: int, size: int, workers: int) -> list[slice]:
    """All members in nearly equal blocks: as many for each worker, about TOGETHER numbers if a member has `size`."""
    most = min(max(1, TOGETHER // size), -(-members // workers))
    count = min(members, -(-members // (most * workers)) * workers)
    edges = [members * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


@contextmanager
def over_threads(workers: int) -> Iterator[ThreadPoolExecutor | None]:
    """A pool of `workers` threads that share torch's own between them; none for one worker."""
    threads = torch.get_num_threads()
    if workers == 1:
        yield None
        return
    torch.set_num_threads(max(1, threads // workers))  # what a new thread starts with
    try:
        with ThreadPoolExecutor(workers) as pool:
            yield pool
    finally:
        torch.set_num_threads(threads)
