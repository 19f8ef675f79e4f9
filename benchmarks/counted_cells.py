"""Maxima, minima and kernels that no series reaches: d', seconds, and all pairs in plain torch beside them.

python benchmarks/counted_cells.py [--n 100000] [--only nearest] [--json FILE]

Two CPU threads or as many as torch takes, float64 on both sides, tokens uniform in the box. `exact_seconds` is scaled
from 256 queries, the best of six runs; `error` is the largest difference from the exact reduction on them. Where
`sources` is true queries meet other tokens than themselves: the nearest of a second cloud of n points.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial

import torch

import sumformer
from sharp_kernels import QUERIES, exact_seconds, seconds, verification

Pair = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def distances(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cdist(x, y).unsqueeze(-1)


def tuned(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Attention whose temperature is the mean squared distance to the others."""
    r2 = distances(x, y).square()
    k = torch.exp(-r2 / (0.2 + r2.mean(1, keepdim=True)))
    return (k * y).sum(1) / k.sum(1)


def envelope(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """max-plus convolution of the values y_1 at places y_0 with a cone."""
    return (y[None, :, 1:] - 4 * (x[:, None, :1] - y[None, :, :1]).abs()).amax(1)


TUNED = "exp(-norm2(x-y)/(0.2+mean(norm2(x-y))))"
# name, formula, d, ε, queries against other sources, the same for tokens x (q, d) and y (n, d)
CASES: list[tuple[str, str, int, float, bool, Pair]] = [
    ("farthest", "max(norm(x-y))", 2, 3e-2, False, lambda x, y: distances(x, y).amax(1)),
    ("nearest", "min(norm(x-y))", 2, 3e-2, True, lambda x, y: distances(x, y).amin(1)),
    ("nearest", "min(norm(x-y))", 3, 1e-1, True, lambda x, y: distances(x, y).amin(1)),
    ("envelope", "max(y[1]-4*abs(x[0]-y[0]))", 2, 2e-2, False, envelope),
    ("self-tuned attention", f"sum({TUNED}*y)/sum({TUNED})", 1, 1e-2, False, tuned),
    ("range", "max(abs(x-y))", 8, 1e-2, False, lambda x, y: (x[:, None] - y[None]).abs().amax(1)),
]


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    rows = []
    for name, source, d, epsilon, others, exact in (case for case in CASES if options.only in case[0]):
        c = sumformer.construct(source, epsilon, d=d)
        verified, checked = verification(c)
        draw = partial(torch.rand, 1, options.n, d, dtype=torch.float64)
        X = draw(generator=torch.Generator().manual_seed(0))
        Z = draw(generator=torch.Generator().manual_seed(1)) if others else None
        call = partial(c, X, sources=Z)
        against = X[0] if Z is None else Z[0]
        wanted = torch.cat([exact(piece, against) for piece in X[0, :QUERIES].split(16)])
        slow = exact_seconds(lambda x, _, f=exact, y=against: f(x, y), X[0])
        row = {
            "target": name,
            "formula": source,
            "d": d,
            "epsilon": epsilon,
            "sources": others,
            "route": c.certificate.route,
            "latent_dimension": c.certificate.latent_dimension,
            "certified": c.certificate.total,
            "verified": verified,
            "construct_seconds": round(c.seconds, 2),
            "verify_seconds": round(checked, 2),
            "error": float((call()[0, :QUERIES] - wanted).abs().max()),
            "seconds": (fast := seconds(call)),
            "exact_seconds": slow,
            "times_faster": slow / fast,
        }
        print(json.dumps(row), flush=True)
        rows.append(row)
    if options.json:
        command = f"python benchmarks/counted_cells.py --n {options.n} --json benchmarks/results/counted_cells_cpu.json"
        machine = {"threads": torch.get_num_threads(), "torch": torch.__version__}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"n": options.n, **machine, "rows": rows, "command": command}, file, indent=1)


if __name__ == "__main__":
    main()
