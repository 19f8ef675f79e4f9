"""Median seconds of every contestant at every n, forward and forward + backward, and the peak memory of one step.

Whatever would take longer than `limit` seconds a step is left out from there on, as it is quadratic. Memory is measured
in a process of its own: the largest resident set of one forward + backward, less what was there before.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from sumformer.experiments.bench.contestants import CONTESTANTS, Contestant, Shape

LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)


@dataclass(frozen=True)
class Config:
    """batch 4, d = 256, 8 heads, float32, 2 threads unless told otherwise."""

    batch: int = 4
    lengths: tuple[int, ...] = LENGTHS
    threads: int = 2
    device: str = "cpu"
    limit: float = 20.0
    memory: bool = True
    shape: Shape = field(default_factory=Shape)


def run(config: Config, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """One row per contestant and n; ratios are peer over ours within a mechanism, so above 1 means ours is faster."""
    before = torch.get_num_threads()
    torch.set_num_threads(config.threads)
    rows: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    try:
        for contestant in CONTESTANTS:
            for n in config.lengths:
                progress(f"{contestant.name}, n = {n:,}")
                try:
                    row = _measure(contestant, n, config)
                except ImportError as error:
                    missing[contestant.name] = f"not installed ({error.name})"
                    break
                rows.append(row)
                if row["step_seconds"] > config.limit / 3.5:
                    break
    finally:
        torch.set_num_threads(before)
    return {
        "machine": platform.machine(),
        "processor": platform.processor() or platform.machine(),
        "torch": torch.__version__,
        "config": asdict(config),
        "rows": rows,
        "missing": missing,
        "ratios": ratios(rows),
    }


def ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each mechanism, peer and n: seconds of the peer over seconds of ours."""
    ours = {(r["mechanism"], r["n"]): r for r in rows if r["ours"]}
    return [
        {
            "mechanism": r["mechanism"],
            "n": r["n"],
            "ours": mine["name"],
            "peer": r["name"],
            "forward": r["forward_seconds"] / mine["forward_seconds"],
            "step": r["step_seconds"] / mine["step_seconds"],
        }
        for r in rows
        if not r["ours"] and (mine := ours.get((r["mechanism"], r["n"]))) is not None
    ]


def _measure(contestant: Contestant, n: int, config: Config) -> dict[str, Any]:
    torch.manual_seed(0)
    module = contestant.build(config.shape, n).to(config.device).eval()
    x = torch.randn(config.batch, n, config.shape.d, device=config.device)
    with torch.no_grad():
        forward = _median(lambda: module(x), config)
    x.requires_grad_(True)
    step = _median(lambda: _step(module, x), config)
    return {
        "name": contestant.name,
        "mechanism": contestant.mechanism,
        "ours": contestant.ours,
        "n": n,
        "parameters": sum(p.numel() for p in module.parameters()),
        "forward_seconds": forward,
        "step_seconds": step,
        "peak_bytes": _peak_bytes(contestant, n, config) if config.memory else None,
    }


def _step(module: nn.Module, x: Tensor) -> Tensor:
    out: Tensor = module(x)
    torch.autograd.backward(out.sum())
    return out


def _median(call: Callable[[], Tensor], config: Config) -> float:
    """A warm-up, then up to nine runs or two seconds."""
    times: list[float] = []
    start = time.perf_counter()
    for repeat in range(10):
        began = time.perf_counter()
        call()
        if config.device != "cpu":
            torch.cuda.synchronize()
        elapsed = time.perf_counter() - began
        if repeat or elapsed > 1.0:
            times.append(elapsed)
        if len(times) >= 3 and time.perf_counter() - start > 2.0:
            break
        if times and time.perf_counter() - start > 6.0:
            break
    return statistics.median(times)


def _peak_bytes(contestant: Contestant, n: int, config: Config) -> int | None:
    """The peak of one step in a fresh process (CPU), or of the allocator (GPU)."""
    if config.device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        module = contestant.build(config.shape, n).to(config.device)
        _step(module, torch.randn(config.batch, n, config.shape.d, device=config.device, requires_grad=True))
        return torch.cuda.max_memory_allocated() - held
    command = [sys.executable, "-m", "sumformer.experiments.bench.memory", contestant.name, str(n), str(config.batch)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "2"})
    return int(done.stdout) if done.returncode == 0 else None
