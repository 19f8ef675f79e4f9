"""Sparse against dense attention in one run: seconds, ratios, memory, the time to build an index.

    python benchmarks/sparse_attention.py [--n 16384] [--threads 2] [--repeats 7] [--json FILE]

Batch 1, 4 heads of 32, float32, CPU. Sparse: q, k, v → output by `sparse_attend`, index kept from the call before, as
in a second layer. Dense: `scaled_dot_product_attention` on the same q, k, v. Each number is the least of its repeats,
sparse and dense taken in turn, so that other work on the machine falls on both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from sumformer.nn.normalisers import Softmax
from sumformer.nn.patterns import BigBird, Fixed, Longformer, Pattern, Random, Star, Strided, Window
from sumformer.nn.patterns.plan import _build, plan
from sumformer.nn.sparse_blocks import sparse_attend

PATTERNS: list[Pattern] = [
    Window(64),
    Star(1),
    Star(64),
    Longformer(64, 4),
    BigBird(64, 4, 3),
    Fixed(128),
    Strided(128),
    Random(32),
]
CPU = torch.device("cpu")


def sparse(pattern: Pattern, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    n = q.shape[2]
    layout = plan(pattern.step(), n, CPU)
    halo, spare = layout.halo, layout.size - n
    keys, values = (functional.pad(x, (0, 0, halo, halo + spare)) for x in (k, v))
    return sparse_attend(functional.pad(q, (0, 0, 0, spare)), keys, values, layout, Softmax())[:, :, :n]


def dense(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(q, k, v, scale=1.0)


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def both_ways(run: Callable[..., Tensor], q: Tensor, k: Tensor, v: Tensor) -> None:
    torch.autograd.grad(run(q, k, v).sum(), [q, k, v])


def measure(pattern: Pattern, n: int, repeats: int) -> dict[str, Any]:
    q, k, v = (torch.randn(1, 4, n, 32, generator=torch.Generator().manual_seed(i)) for i in range(3))
    leaves = [x.clone().requires_grad_(True) for x in (q, k, v)]
    found: dict[str, list[float]] = {}
    for turn in range(repeats):
        with torch.no_grad():
            found.setdefault("sparse_forward", []).append(seconds(lambda: sparse(pattern, q, k, v)))
            if turn < 2:
                found.setdefault("dense_forward", []).append(seconds(lambda: dense(q, k, v)))
        run = lambda *x: sparse(pattern, *x)  # noqa: E731
        found.setdefault("sparse_both", []).append(seconds(lambda run=run: both_ways(run, *leaves)))
        if turn < 1:
            found.setdefault("dense_both", []).append(seconds(lambda: both_ways(dense, *leaves)))
    least = {name: min(times) for name, times in found.items()}
    return {
        "pattern": str(pattern),
        "connections": pattern.connections(n),
        "density": pattern.density(n),
        **{f"{name}_seconds": value for name, value in least.items()},
        "ratio_forward": least["dense_forward"] / least["sparse_forward"],
        "ratio_both": least["dense_both"] / least["sparse_both"],
        **index_times(pattern, repeats),
    }


def index_times(pattern: Pattern, repeats: int) -> dict[str, float]:
    """Building the index for 65,536 tokens, not from the cache: of the clock, and of the processor (all threads)."""
    clock, processor = [], []
    for _ in range(repeats):
        began = time.process_time()
        clock.append(seconds(lambda: _build(pattern.step(), 65_536, CPU, False, 65_536)))
        processor.append(time.process_time() - began)
    return {"index_65536_milliseconds": 1e3 * min(clock), "index_65536_cpu_milliseconds": 1e3 * min(processor)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=16_384)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    result = {
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}",
        "load_average": os.getloadavg(),
        "n": options.n,
        "patterns": [measure(pattern, options.n, options.repeats) for pattern in PATTERNS],
    }
    text = json.dumps(result, indent=2)
    print(text)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
