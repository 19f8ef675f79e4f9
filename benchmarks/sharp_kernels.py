"""Sharp pairwise sums: d', seconds, and the exact sum in chunks of plain torch beside it.

python benchmarks/sharp_kernels.py [--n 100000] [--only rank] [--json FILE]
python benchmarks/sharp_kernels.py --device cuda [--n 1048576] [--json FILE]

`exact_seconds` is scaled from the queries computed, the best of six runs each; `error` is the largest difference from
the exact sum in float64 on 256 queries. On a CPU both sides are in float64 on the same threads. On a GPU both take
float32 tokens and give float32, the network (eager) with float64 inside; the exact sum is in float32, compiled or
eager, whichever is faster. Tokens are uniform in the box. `verified` is null where python-flint is not installed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec

import torch

import sumformer

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
    ("soft rank", "mean(sigmoid((x-y)/0.0005))", 1, 1e-3, mean_of(lambda x, y: torch.sigmoid((x - y) / 0.0005))),
    ("density", "mean(exp(-2000*norm2(x-y)))", 2, 1e-3, mean_of(lambda x, y: torch.exp(-2000 * norm2(x - y)))),
    ("density", "mean(exp(-200*norm2(x-y)))", 3, 1e-3, mean_of(lambda x, y: torch.exp(-200 * norm2(x - y)))),
    ("potential", "mean(log(norm2(x-y)+0.001))", 2, 1e-2, mean_of(lambda x, y: torch.log(norm2(x - y) + 0.001))),
    (
        "gravity",
        "mean((y-x)/(norm2(y-x)+0.25)**1.5)",
        3,
        1e-2,
        mean_of(lambda x, y: (y - x) / (norm2(y - x) + 0.25) ** 1.5),
    ),
    (
        "gravity",
        "mean((y-x)/(norm2(y-x)+0.05)**1.5)",
        3,
        5e-2,
        mean_of(lambda x, y: (y - x) / (norm2(y - x) + 0.05) ** 1.5),
    ),
]


def seconds(call: Callable[[], object]) -> float:
    """The best of six runs, after one that is not timed."""
    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    call()
    best = float("inf")
    for _ in range(6):
        wait()
        start = time.perf_counter()
        call()
        wait()
        best = min(best, time.perf_counter() - start)
    return best


def exact_seconds(exact: Pair, x: torch.Tensor) -> float:
    """The exact sum at every token of x (n, d), from that at some of them."""
    if not x.is_cuda:
        count, ways, chunk = QUERIES, [exact], 16
    else:
        torch.compiler.reset()
        count, ways, chunk = 16 * QUERIES, [exact, torch.compile(exact)], QUERIES
    timed = [seconds(lambda f=f: [f(piece, x) for piece in x[:count].split(chunk)]) for f in ways]
    return min(timed) * len(x) / min(count, len(x))


def verification(c: sumformer.Construction) -> tuple[bool | None, float]:
    """Whether a second program verifies the saved network, and its seconds."""
    if find_spec("flint") is None:
        return None, 0.0
    from sumformer.certificates.checker import check

    with tempfile.TemporaryDirectory() as folder:
        c.save(folder)
        start = time.perf_counter()
        return check(folder).verified, time.perf_counter() - start


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--n", type=int, default=None)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    n, rows = options.n or (2**20 if on_gpu else 100_000), []
    for name, source, d, epsilon, exact in (case for case in CASES if options.only in case[0]):
        c = sumformer.construct(source, epsilon, d=d, dtype="mixed" if on_gpu else "float64")
        verified, checked = verification(c)
        dtype = c.network.outside
        X = torch.rand(1, n, d, dtype=dtype, generator=torch.Generator().manual_seed(0)).to(options.device)
        network = c.network.to(options.device)
        call = (lambda network=network, X=X: network(X)) if on_gpu else (lambda c=c, X=X: c(X))
        wide = X[0].double()
        wanted = torch.cat([exact(piece, wide) for piece in wide[:QUERIES].split(16)])
        out, slow, fast = call(), exact_seconds(exact, X[0]), seconds(call)
        row = {
            "target": name,
            "formula": source,
            "d": d,
            "epsilon": epsilon,
            "route": c.certificate.route,
            "latent_dimension": c.certificate.latent_dimension,
            "certified": c.certificate.total,
            "verified": verified,
            "construct_seconds": round(c.seconds, 2),
            "verify_seconds": round(checked, 2),
            "error": float((out[0, :QUERIES] - wanted).abs().max()),
            "seconds": fast,
            "exact_seconds": slow,
            "times_faster": slow / fast,
        }
        print(json.dumps(row), flush=True)
        rows.append(row)
    if options.json:
        published = f"benchmarks/results/sharp_kernels_{'h200' if on_gpu else 'cpu'}.json"
        command = f"python benchmarks/sharp_kernels.py --device {options.device} --n {n} --json {published}"
        machine = {"device": torch.cuda.get_device_name()} if on_gpu else {"threads": torch.get_num_threads()}
        result = {"n": n, **machine, "torch": torch.__version__, "rows": rows}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({**result, "command": command}, file, indent=1)


if __name__ == "__main__":
    main()
