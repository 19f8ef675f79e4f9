"""Sharp pairwise sums at n = 100,000 on a CPU: d', seconds, and the exact sum in chunks of plain torch beside it.

python benchmarks/sharp_kernels.py [--n 100000] [--only rank] [--json FILE]

`exact_seconds` is scaled from the queries computed, of which `error` is the largest difference; both sides run in
float64 on the same threads, the better of two runs each. Tokens are uniform in the box.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable

import torch

import sumformer
from sumformer.certificates.checker import check

Pair = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
QUERIES = 256


def mean_of(kernel: Pair) -> Pair:
    """Mean over y of k(x, y), tokens x (q, d), y (n, d) → (q, width)."""
    return lambda x, y: kernel(x[:, None], y[None]).mean(1)


def norm2(z: torch.Tensor) -> torch.Tensor:
    return z.square().sum(-1, keepdim=True)


CASES: list[tuple[str, str, int, float, Pair]] = [
    ("soft rank", "mean(sigmoid((x-y)/0.01))", 1, 1e-3, mean_of(lambda x, y: torch.sigmoid((x - y) / 0.01))),
    ("soft rank", "mean(sigmoid((x-y)/0.004))", 1, 1e-3, mean_of(lambda x, y: torch.sigmoid((x - y) / 0.004))),
    ("mean distance", "mean(sqrt((x-y)**2+0.0001))", 1, 1e-3, mean_of(lambda x, y: ((x - y) ** 2 + 0.0001).sqrt())),
    ("density", "mean(exp(-2000*norm2(x-y)))", 1, 1e-3, mean_of(lambda x, y: torch.exp(-2000 * norm2(x - y)))),
    ("density", "mean(exp(-200*norm2(x-y)))", 2, 1e-3, mean_of(lambda x, y: torch.exp(-200 * norm2(x - y)))),
    ("potential", "mean(log(norm2(x-y)+0.0001))", 1, 1e-3, mean_of(lambda x, y: torch.log(norm2(x - y) + 0.0001))),
    (
        "gravity",
        "mean((y-x)/(norm2(y-x)+0.05)**1.5)",
        2,
        1e-2,
        mean_of(lambda x, y: (y - x) / (norm2(y - x) + 0.05) ** 1.5),
    ),
]


def seconds(call: Callable[[], object]) -> float:
    """The better of two runs, after one that is not timed."""
    call()
    best = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    rows = []
    for name, source, d, epsilon, exact in (case for case in CASES if options.only in case[0]):
        c = sumformer.construct(source, epsilon, d=d)
        with tempfile.TemporaryDirectory() as folder:
            c.save(folder)
            start = time.perf_counter()
            verified = check(folder).verified
            checked = time.perf_counter() - start
        X = torch.rand(1, options.n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        queries = X[0, :QUERIES]
        out = c(X)
        wanted = torch.cat([exact(piece, X[0]) for piece in queries.split(16)])
        slow = seconds(lambda e=exact, q=queries, X=X: [e(piece, X[0]) for piece in q.split(16)])
        fast = seconds(lambda c=c, X=X: c(X))
        row = {
            "target": name,
            "formula": source,
            "d": d,
            "epsilon": epsilon,
            "latent_dimension": c.certificate.latent_dimension,
            "certified": c.certificate.total,
            "verified": verified,
            "construct_seconds": round(c.seconds, 2),
            "verify_seconds": round(checked, 2),
            "error": float((out[0, :QUERIES] - wanted).abs().max()),
            "seconds": fast,
            "exact_seconds": slow * options.n / QUERIES,
            "times_faster": slow * options.n / QUERIES / fast,
        }
        print(json.dumps(row), flush=True)
        rows.append(row)
    if options.json:
        command = "python benchmarks/sharp_kernels.py --json benchmarks/results/sharp_kernels_cpu.json"
        result = {"n": options.n, "threads": torch.get_num_threads(), "torch": torch.__version__, "rows": rows}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({**result, "command": command}, file, indent=1)


if __name__ == "__main__":
    main()
