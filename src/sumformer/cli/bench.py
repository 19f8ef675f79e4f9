"""`sumformer bench`: our mixers against the peers of the same mechanism, in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from sumformer.cli.bench_result import report
from sumformer.cli.device import Device, check_device
from sumformer.cli.gpu_bench import gpu_bench
from sumformer.cli.output import Json, command, console
from sumformer.errors import InputError
from sumformer.experiments.bench import Config, draw, run

Longest = Annotated[int, typer.Option("--longest", help="The largest number of tokens.")]
Limit = Annotated[float, typer.Option("--limit", help="On a CPU: seconds a step may take before larger n are skipped.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for bench.json and bench.png.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the benchmark in --out.")]
NoMemory = Annotated[bool, typer.Option("--no-memory", help="On a CPU: do not measure memory, nor stop at 16 GiB.")]


@command
def bench(
    longest: Longest = 65536,
    device: Device = "cpu",
    limit: Limit = 8.0,
    out: Out = Path("bench-output"),
    overwrite: Overwrite = False,
    no_memory: NoMemory = False,
    as_json: Json = False,
) -> None:
    """Seconds, memory and ratios of SumMixer, Performer, Linformer and sparse attention against their peers."""
    check_device(device)
    if device == "cuda":
        gpu_bench(longest, out, overwrite, as_json)
        return
    lengths = tuple(n for n in Config().lengths if n <= longest)
    if not lengths:
        raise InputError(f"--longest: expected at least {Config().lengths[0]}, got {longest}")
    config = Config(lengths=lengths, device=device, limit=limit, memory=not no_memory)
    report(lambda tell: run(config, tell), draw, show, out, overwrite, as_json)


def show(result: dict[str, Any]) -> None:
    """Times by contestant, then ratios."""
    table = Table("mechanism", Column("contestant", overflow="fold"), "n", "forward ms", "fwd+bwd ms", "peak MiB")
    for r in result["rows"]:
        peak = "" if r["peak_bytes"] is None else f"{r['peak_bytes'] / 2**20:.0f}"
        times = (f"{1e3 * r['forward_seconds']:.2f}", f"{1e3 * r['step_seconds']:.2f}")
        table.add_row(r["mechanism"], r["name"], f"{r['n']:,}", *times, peak)
    console.print(table)
    ratio = Table(
        *(Column(who, overflow="fold") for who in ("ours", "peer")), "n", "peer / ours, forward", "fwd+bwd", "memory"
    )
    for r in result["ratios"]:
        cells = ["" if r[what] is None else f"{r[what]:.2f}" for what in ("forward", "step", "memory")]
        ratio.add_row(r["ours"], r["peer"], f"{r['n']:,}", *cells)
    console.print(ratio)
    for name, why in result["missing"].items():
        console.print(f"left out: {name}, {why}")
