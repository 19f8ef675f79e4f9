"""Codes of A 2.13, rows per second on one core: encode n tokens, remove the own one, decode the others.

    python benchmarks/grid_codes.py [--rows 2000] [--json FILE]

All codes see the same rows in the same run, and every row is checked to come back. Then the ε that the budget of cells
allows for distance to the mean, max-pooling and the farthest token, n = 2 … 8, d = 1, 2, with the attack beside it.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from typing import Any

import torch

import sumformer
from sumformer.certificates.attack import attack
from sumformer.errors import RefusedError
from sumformer.nn.codes import CODES, make_code

SIZES = ((8, 16), (8, 256), (8, 1024), (8, 10_000), (64, 1024))
TARGETS = ("norm(x-mean(y))", "max(y)", "max(norm(x-y))")


def rate(name: str, cells: int, n: int, rows: int) -> dict[str, Any]:
    """The best of three runs."""
    code = make_code(name, cells, n)
    c = torch.randint(cells, (rows, n), generator=torch.Generator().manual_seed(0))
    times = []
    for _ in range(3):
        start = time.perf_counter()
        others = code.decode(code.sum(c) - code.encode(c[:, 0]), n - 1)
        times.append(time.perf_counter() - start)
    right = torch.equal(others, c[:, 1:].sort(1).values)
    return {
        "n": n,
        "cells": cells,
        "code": name,
        "d'": code.latent_dimension,
        "rows/s": rows / min(times),
        "right": right,
    }


def reach(source: str, n: int, d: int) -> dict[str, Any]:
    """The least ε of route grid, found by asking for too little, and a certificate at 2e-2 under attack."""
    try:
        sumformer.construct(source, 1e-12, route="grid", n=n, d=d)
        least = 1e-12
    except RefusedError as refusal:
        least = refusal.reachable or float("nan")
    c = sumformer.construct(source, 2e-2, route="grid", n=n, d=d)
    worst = attack(c.target, c.network, effort="quick", seconds=5).worst
    row = {"target": source, "n": n, "d": d, "least ε": least, "certified": c.certificate.total, "attack": worst}
    return row | {"d'": c.certificate.latent_dimension, "code": c.network.code, "seconds": c.seconds}


def show(row: dict[str, Any]) -> None:
    print("  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rates, reaches = [], []
    for n, cells in SIZES:
        for name in CODES:
            slow = name == "integer n+1" and cells > 1024
            rates.append(rate(name, cells, n, options.rows // 10 if slow else options.rows))
            show(rates[-1])
    for source in TARGETS:
        for d in (1, 2):
            for n in range(2, 9):
                reaches.append(reach(source, n, d))
                show(reaches[-1])
    if options.json:
        result = {"machine": platform.processor(), "torch": torch.__version__, "rates": rates, "reach": reaches}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2, ensure_ascii=False)


if __name__ == "__main__":
    main()
