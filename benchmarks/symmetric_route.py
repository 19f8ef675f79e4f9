"""Route symmetric over targets × (n, d) × ε: seconds, d', terms, certified bound against the worst error found.

Every target is forced through the route: what structure it has is not used.
  python benchmarks/symmetric_route.py                    # all of it, and results/symmetric_route.json
  python benchmarks/symmetric_route.py --only log --sizes 8x1 --epsilons 1e-3
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import torch

from sumformer.certificates.attack import attack
from sumformer.targets import target
from sumformer.theorems.alberti_2023.arithmetic import ARITHMETICS
from sumformer.theorems.alberti_2023.symmetric_route import symmetric_route

TARGETS = {
    "gaussian": "sum(exp(-norm2(x - y))*y)/sum(exp(-norm2(x - y)))",
    "attention": "sum(exp(2*dot(x, y))*y)/sum(exp(2*dot(x, y)))",
    "log": "log(1 + sum(norm2(x - y)))",
    "sin": "sin(x[0] + total(sum(y)))",
    # without a sum structure that route sums could use: nested reductions inside functions of x and y
    "product": "exp(sum_others(log(1 + dot(x, y)))/4)",  # a product over the others
    "variance": "sum_others(exp(-norm2(y - mean(y))))",
    "sharpened": "sum(y*exp(x[0]*mean(y[0])*y[0]))/sum(exp(x[0]*mean(y[0])*y[0]))",
}
SIZES = [(2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (8, 1), (3, 2)]
EPSILONS = [1e-1, 1e-2, 1e-3]
RESULTS = Path(__file__).parent / "results" / "symmetric_route.json"


def measure(name: str, n: int, d: int, epsilon: float, seconds: float) -> dict[str, object]:
    """One row of the table."""
    f = target(TARGETS[name], n=n, d=d)
    start, cpu = time.perf_counter(), time.process_time()
    built = symmetric_route(f, epsilon, ARITHMETICS["float64"])
    took, cpu = time.perf_counter() - start, time.process_time() - cpu
    found = attack(f, built.network, seconds=seconds, effort="full").worst
    return {
        "target": name,
        "n": n,
        "d": d,
        "epsilon": epsilon,
        "seconds": round(took, 2),
        "cpu_seconds": round(cpu, 2),
        "orbits": built.constants["orbits"],
        "kept": built.constants["kept"],
        "terms": built.constants["terms"],
        "latent_dimension": built.latent_dimension,
        "certified": built.total,
        "observed": found,
        "ratio": round(built.total / found, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(TARGETS))
    parser.add_argument("--sizes", nargs="*", default=[f"{n}x{d}" for n, d in SIZES])
    parser.add_argument("--epsilons", nargs="*", type=float, default=EPSILONS)
    parser.add_argument("--attack", type=float, default=5.0, help="seconds of search for the worst error")
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    numbers = f"{'s':>7}{'cpu s':>7}{'orbits':>10}{'kept':>6}{'terms':>7}{'d′':>4}"
    print(f"{'target':<11}{'n,d':>5}{'ε':>8}{numbers}  certified  observed ratio")
    for name in options.only:
        for size in options.sizes:
            n, d = (int(k) for k in size.split("x"))
            for epsilon in options.epsilons:
                row = measure(name, n, d, epsilon, options.attack)
                rows.append(row)
                print(
                    f"{name:<11}{f'{n},{d}':>5}{epsilon:>8.0e}{row['seconds']:>7.2f}{row['cpu_seconds']:>7.2f}{row['orbits']:>10,}{row['kept']:>6}"
                    f"{row['terms']:>7}{row['latent_dimension']:>4}  {row['certified']:.2e}  {row['observed']:.2e}"
                    f"{row['ratio']:>6.2f}",
                    flush=True,
                )
    ratios = [float(str(row["ratio"])) for row in rows]
    slowest = max(float(str(row["seconds"])) for row in rows)
    middle, largest = statistics.median(ratios), max(ratios)
    print(f"{len(rows)} cases: ratio median {middle:.2f}, max {largest:.2f}; slowest {slowest:.1f} s")
    everything = options.only == list(TARGETS) and options.json is None
    path = RESULTS if everything else options.json
    if path is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
