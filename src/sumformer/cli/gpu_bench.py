"""`sumformer bench --device cuda`: one mixing layer against what users would pick instead, floors in the same run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table

from sumformer.cli.bench_result import report
from sumformer.cli.output import console
from sumformer.errors import InputError
from sumformer.experiments.gpu_bench import Config, draw, run


def gpu_bench(longest: int, out: Path, overwrite: bool, as_json: bool) -> None:
    """Measure, write bench.json and bench.png to `out`, show."""
    config = Config()
    lengths = tuple(n for n in config.lengths if n <= longest)
    if not lengths:
        raise InputError(f"--longest: expected at least {config.lengths[0]}, got {longest}")
    config = replace(config, lengths=lengths, long=tuple(n for n in config.long if n <= longest))
    report(lambda tell: run(config, tell), draw, show, out, overwrite, as_json)


def show(result: dict[str, Any]) -> None:
    """The machine, the times (of replayed graphs where there are any), the ratios."""
    machine = result["machine"]
    console.print(
        f"{machine['device']}, torch {machine['torch']}, triton {machine['triton']}, kernels: {machine['kernels']}; "
        f"{machine['copy_TB_per_s']:.2f} TB/s copied, {machine['bf16_TFLOP_per_s']:.0f} TFLOP/s in bf16"
    )
    table = Table("layer", "n", "forward ms", "fwd+bwd ms", "peak MiB of a step")
    for row in (
        *({"name": "floor: the products", "step_peak_bytes": None} | f for f in result["floors"]),
        *result["rows"],
    ):
        peak = row["step_peak_bytes"]
        times = [row[f"{part}_graph_ms"] or row[f"{part}_ms"] for part in ("forward", "step")]
        shown = ["" if t is None else f"{t:.3f}" for t in times]
        table.add_row(row["name"], f"{row['n']:,}", *shown, "" if peak is None else f"{peak / 2**20:.0f}")
    console.print(table)
    kinds = [key for key in result["ratios"][0] if key not in ("name", "n")]
    ratio = Table("ours", "n", *(key.replace("_", " ") for key in kinds))
    for row in result["ratios"]:
        values = ["" if row[key] is None else f"{row[key]:.2f}" for key in kinds]
        ratio.add_row(row["name"], f"{row['n']:,}", *values)
    console.print(ratio)
    fastest = Table("n", "", "ours", "ms", "best peer", "ms", "peer / ours")
    for row in result["best"]:
        for part, found in ((part, found) for part, found in row.items() if part != "n"):
            cells = (found["ours"], f"{found['ours_ms']:.3f}", found["peer"], f"{found['peer_ms']:.3f}")
            fastest.add_row(f"{row['n']:,}", part, *cells, f"{found['ratio']:.2f}")
    console.print(fastest)
