"""Every contestant at every n, forward and forward + backward, against the floor of three d × d products.

The floor is cuBLAS on the same shapes in the same run: three products forward, nine in all. Ratios to it, and to the
best peer, use the times of replayed CUDA graphs where both have one: launches are then out of both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sumformer import nn as snn
from sumformer.experiments.gpu_bench.contestants import FlashAttention, LinearAttention, compiled
from sumformer.experiments.gpu_bench.timing import milliseconds, peak_bytes, replayed, time_of
from sumformer.kernels.availability import SWITCH, obstacle


@dataclass(frozen=True)
class Config:
    """One sequence, bfloat16."""

    d: int = 1024
    lengths: tuple[int, ...] = (64, 256, 1024, 4096, 16384, 65536, 262144)
    long: tuple[int, ...] = (2**20, 2**22)
    """Lengths for ours alone, forward + backward."""
    limit_ms: float = 250.0
    """A peer whose forward takes longer gets no backward there."""


Make = Callable[[int], nn.Module]
OURS = {"SumMixer, eager": "0", "SumMixer, compiled": "0", "SumMixer, fused": "1", "SumMixer, recompute": "1"}


def run(config: Config, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Machine, floors, one row per contestant and n, ratios; at each n the floor and everybody in turn."""
    result: dict[str, Any] = {"machine": machine(), "config": asdict(config), "dtype": "bfloat16", "floors": []}
    made: dict[str, nn.Module] = {}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in contestants()}
    for n in config.lengths:
        progress(f"floor, n = {n:,}")
        result["floors"].append({"n": n} | floor(n, config.d))
        for name, make in contestants().items():
            progress(f"{name}, n = {n:,}")
            with switched(OURS.get(name, "1")):
                torch.manual_seed(0)
                made[name] = made[name] if name in made else make(config.d)
                rows[name].append({"name": name, "n": n} | measure(made[name], n, config))
    for n in config.long:
        for name in ("SumMixer, fused", "SumMixer, recompute"):
            if name == "SumMixer, fused" and n > 2**20:
                continue
            progress(f"{name}, n = {n:,}")
            rows[name].append({"name": name, "n": n} | measure(made[name], n, config, repeats=3, graphs=False))
    result["rows"] = [row for found in rows.values() for row in found]
    result["ratios"] = ratios(result["rows"], {row["n"]: row for row in result["floors"]})
    result["best"] = best(result["rows"])
    return result


def contestants() -> dict[str, Make]:
    """name → how it is made, on the device."""

    def on_device(module: nn.Module) -> nn.Module:
        return module.cuda().bfloat16()

    return {
        "SumMixer, eager": lambda d: on_device(snn.SumMixer(d)),
        "SumMixer, compiled": lambda d: compiled(on_device(snn.SumMixer(d))),
        "SumMixer, fused": lambda d: on_device(snn.SumMixer(d)),
        "SumMixer, recompute": lambda d: on_device(snn.SumMixer(d, recompute=True)),
        "SDPA": lambda d: on_device(FlashAttention(d)),
        "linear attention, compiled": lambda d: compiled(on_device(LinearAttention(d))),
    }


def measure(module: nn.Module, n: int, config: Config, repeats: int = 10, graphs: bool = True) -> dict[str, Any]:
    """forward and step, as launched and replayed, and the peak bytes of a step."""
    x = torch.randn(1, n, config.d, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    grad = torch.randn(1, n, config.d, device="cuda", dtype=torch.bfloat16)
    leaves = [x, *module.parameters()]

    def forward() -> Tensor:
        with torch.no_grad():
            out: Tensor = module(x)
        return out

    def step() -> tuple[Tensor, ...]:
        return torch.autograd.grad(module(x), leaves, grad)

    row: dict[str, Any] = {"forward_ms": milliseconds(forward, repeats)}
    row["forward_graph_ms"] = replayed(forward) if graphs and row["forward_ms"] < config.limit_ms else None
    slow = graphs and row["forward_ms"] > config.limit_ms
    row["step_ms"] = None if slow else milliseconds(step, repeats)
    row["step_graph_ms"] = None if slow or not graphs else replayed(step)
    row["step_peak_bytes"] = None if slow else peak_bytes(step)
    return row


def floor(n: int, d: int) -> dict[str, float | None]:
    """Three products of (n, d) with (d, d), and the nine of forward and backward."""
    x, g = (torch.randn(n, d, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    weights = [torch.randn(d, d, device="cuda", dtype=torch.bfloat16) for _ in range(3)]

    def forward() -> list[Tensor]:
        return [x @ w for w in weights]

    def step() -> list[tuple[Tensor, ...]]:
        return [(x @ w, g @ w.t(), g.t() @ x) for w in weights]

    times = {"forward_ms": milliseconds(forward), "forward_graph_ms": replayed(forward)}
    return times | {"step_ms": milliseconds(step), "step_graph_ms": replayed(step)}


def ratios(rows: list[dict[str, Any]], floors: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """For each of our rows: over the floor, and best peer over it (above 1: ours is faster)."""
    out = []
    for row in (r for r in rows if r["name"].startswith("SumMixer") and r["n"] in floors):
        found: dict[str, Any] = {"name": row["name"], "n": row["n"]}
        for part in ("forward", "step"):
            mine = time_of(row, part)
            base = time_of(floors[row["n"]], part)
            found[f"{part}_over_floor"] = None if mine is None or base is None else mine / base
            for peer in ("SDPA", "linear attention, compiled"):
                other = next((time_of(r, part) for r in rows if r["name"] == peer and r["n"] == row["n"]), None)
                found[f"{part}_{peer}_over_ours"] = None if mine is None or other is None else other / mine
        out.append(found)
    return out


def best(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each n: the fastest of ours and of the peers, replayed and as launched, and peer over ours."""
    out = []
    for n in dict.fromkeys(row["n"] for row in rows if not row["name"].startswith("SumMixer")):
        found: dict[str, Any] = {"n": n}
        for part in ("forward", "step", "forward launched", "step launched"):
            name, launched = part.split()[0], part.endswith("launched")
            times: list[list[tuple[float, str]]] = [[], []]
            for row in (r for r in rows if r["n"] == n):
                time = row[f"{name}_ms"] if launched else time_of(row, name)
                if time is not None:
                    times[not row["name"].startswith("SumMixer")].append((time, row["name"]))
            if times[0] and times[1]:
                (mine, us), (theirs, peer) = min(times[0]), min(times[1])
                found[part] = {"ours": us, "ours_ms": mine, "peer": peer, "peer_ms": theirs, "ratio": theirs / mine}
        out.append(found)
    return out


def machine() -> dict[str, Any]:
    """Names, versions, and the two ceilings: bytes copied and bf16 operations per second."""
    a = torch.empty(2**31, dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    copy = milliseconds(lambda: b.copy_(a))
    m = [torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
    product = milliseconds(lambda: m[0] @ m[1])
    try:
        import triton

        version = triton.__version__
    except ImportError:
        version = None
    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": version,
        "kernels": obstacle() or "available",
        "copy_TB_per_s": 2 * a.numel() / copy / 1e9,
        "bf16_TFLOP_per_s": 2 * 8192**3 / product / 1e9,
    }


@contextmanager
def switched(value: str) -> Iterator[None]:
    """The kernels on ("1") or off ("0")."""
    before = os.environ.get(SWITCH)
    os.environ[SWITCH] = value if before != "0" else "0"
    try:
        yield
    finally:
        os.environ.pop(SWITCH) if before is None else os.environ.update({SWITCH: before})
