"""Compiled networks in one run: every gallery target as three architectures, and time against n beside the exact sum.

    python benchmarks/compiled_networks.py gallery [--epsilon 1e-1 1e-2 1e-3] [--json FILE]
    python benchmarks/compiled_networks.py scaling [--n 2 100 20000 100000] [--json FILE]

gallery: exact and sums targets at n = 5, d ≤ 2: processor seconds, layers, parameters, certified and worst found.
scaling: Gaussian attention (−1), d = 1, ε = 1e-3, compiled once for every n. The peer is the exact sum by matrix
products over chunks of queries; the Transformer's attention is quadratic by definition, the Performer's is linear.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import sumformer
from sumformer.certificates.attack import attack
from sumformer.errors import SumformerError
from sumformer.targets import GALLERY
from sumformer.theorems.alberti_2023.faithfulness import faithfulness

ARCHITECTURES = ("transformer", "linformer", "performer")
GAUSS = "sum(exp(-(x-y)**2)*y)/sum(exp(-(x-y)**2))"


def pairwise(x: Tensor, chunk: int = 1024) -> Tensor:
    """The exact sum for tokens (n, 1)."""
    out = []
    for q in x.split(chunk):
        weight = (q - x.T).square_().neg_().exp_()
        out.append(weight @ x / weight.sum(-1, keepdim=True))
    return torch.cat(out)


def timed(run: Callable[[], Tensor]) -> tuple[float, Tensor]:
    start = time.perf_counter()
    out = run()
    return time.perf_counter() - start, out


def gallery(epsilons: list[float]) -> list[dict[str, Any]]:
    """One row per target, ε and architecture."""
    rows = []
    for name, entry in GALLERY.items():
        if entry.kind == "lipschitz":
            continue
        f = entry.build(d=min(entry.d, 2), n=5)
        for epsilon in epsilons:
            for architecture in ARCHITECTURES:
                row: dict[str, Any] = {"target": name, "epsilon": epsilon, "architecture": architecture}
                start = time.process_time()
                try:
                    made = sumformer.construct(f, epsilon, architecture=architecture)
                except SumformerError as refusal:
                    rows.append(row | {"refused": str(refusal)})
                    print(rows[-1])
                    continue
                row["seconds"] = time.process_time() - start
                counted = faithfulness(made.network)
                row |= {"layers": counted.feed_forward_layers, "width": counted.width, "nonzero": counted.nonzero}
                row |= {"dense": counted.dense, "faithful": counted.faithful, "certified": made.certificate.total}
                row["worst"] = attack(f, made.network, effort="quick").worst
                rows.append(row)
                print(row, flush=True)
    ratios = sorted(row["certified"] / max(row["worst"], 1e-300) for row in rows if "worst" in row)
    print(f"certified / worst found, median: {ratios[len(ratios) // 2]:.3g}")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    return rows


@torch.no_grad()
def scaling(counts: list[int]) -> list[dict[str, Any]]:
    """One row per n, all contestants in it."""
    f = sumformer.target(GAUSS, n="any", d=1)
    networks = {name: sumformer.construct(f, 1e-3, architecture=name).network for name in ("performer", "transformer")}
    rows = []
    for n in counts:
        x = torch.rand(n, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        exact_seconds, exact = timed(lambda x=x: pairwise(x))
        row: dict[str, Any] = {"n": n, "exact seconds": exact_seconds}
        for name, network in networks.items():
            if name == "transformer" and n > 20_000:
                continue
            seconds, out = timed(lambda network=network, x=x: network(x[None])[0])
            row |= {f"{name} seconds": seconds, f"{name} ratio": exact_seconds / seconds}
            row[f"{name} difference"] = float((out - exact).abs().max())
        rows.append(row)
        print(row, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("gallery", "scaling"))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1e-1, 1e-2, 1e-3])
    parser.add_argument("--n", type=int, nargs="+", default=[2, 100, 20_000, 100_000])
    parser.add_argument("--json")
    given = parser.parse_args()
    rows = gallery(given.epsilon) if given.what == "gallery" else scaling(given.n)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
