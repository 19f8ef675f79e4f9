"""Median seconds of every contestant at every n, forward and forward + backward, and the peak memory of one step.

Memory is measured first, in a process of its own (`memory.py`), which goes as far in n as 16 GiB allow; seconds then
for those n, and no further once a step takes longer than `limit`.
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

MEASURES = {"forward": "forward_seconds", "step": "step_seconds", "memory": "peak_bytes"}
LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)


@dataclass(frozen=True)
class Config:
    """batch 4, d = 256, 8 heads, float32, 2 threads unless told otherwise."""

    batch: int = 4
    lengths: tuple[int, ...] = LENGTHS
    threads: int = 2
    device: str = "cpu"
    limit: float = 8.0
    """Seconds of a step after which larger n are left out."""
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
            progress(f"{contestant.name}, memory")
            try:
                contestant.build(config.shape, config.lengths[0])
            except ImportError as error:
                missing[contestant.name] = f"not installed ({error.name})"
                continue
            peaks = _peak_bytes(contestant, config)
            for n in config.lengths:
                if peaks and n not in peaks:
                    break
                progress(f"{contestant.name}, n = {n:,}")
                rows.append(_measure(contestant, n, config) | {"peak_bytes": peaks.get(n)})
                if rows[-1]["step_seconds"] > config.limit:
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
    """For each of ours, each peer it meets and each n: seconds and bytes of the peer over those of ours."""
    known = {c.name: c for c in CONTESTANTS}
    found = []
    for mine in (r for r in rows if r["ours"]):
        for r in rows:
            if r["n"] == mine["n"] and known[mine["name"]].meets(known[r["name"]]):
                sides = {"mechanism": mine["mechanism"], "n": r["n"], "ours": mine["name"], "peer": r["name"]}
                found.append(sides | {short: _over(r, mine, full) for short, full in MEASURES.items()})
    return found


def _over(peer: dict[str, Any], mine: dict[str, Any], what: str) -> float | None:
    return peer[what] / mine[what] if peer[what] and mine[what] else None


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
    }


def _step(module: nn.Module, x: Tensor) -> Tensor:
    out: Tensor = module(x)
    torch.autograd.backward(out.sum())
    return out


def _median(call: Callable[[], Tensor], config: Config) -> float:
    """A warm-up, then up to nine runs or a second; what takes longer than three runs once."""
    times: list[float] = []
    for repeat in range(10):
        began = time.perf_counter()
        call()
        if config.device != "cpu":
            torch.cuda.synchronize()
        elapsed = time.perf_counter() - began
        if repeat or elapsed > 3.0:
            times.append(elapsed)
        if elapsed > 3.0 or (len(times) >= 3 and sum(times) > 1.0):
            break
    return statistics.median(times)


def _peak_bytes(contestant: Contestant, config: Config) -> dict[int, int]:
    """n → the peak of one step, as far as memory allows: of a fresh process (CPU), of the allocator (GPU)."""
    if not config.memory:
        return {}
    if config.device != "cpu":
        return _allocator_peaks(contestant, config)
    command = [sys.executable, "-m", "sumformer.experiments.bench.memory", contestant.name, str(config.batch)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(config.threads)}
    done = subprocess.run([*command, *map(str, config.lengths)], capture_output=True, text=True, env=environment)
    return {int(n): int(peak) for n, peak in (line.split() for line in done.stdout.splitlines())}


def _allocator_peaks(contestant: Contestant, config: Config) -> dict[int, int]:
    found = {}
    for n in config.lengths:
        torch.cuda.empty_cache()
        module = contestant.build(config.shape, n).to(config.device)
        x = torch.randn(config.batch, n, config.shape.d, device=config.device, requires_grad=True)
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        try:
            _step(module, x)
        except torch.OutOfMemoryError:
            break
        found[n] = torch.cuda.max_memory_allocated() - held
    return found
