"""Maxima, minima and kernels that no series reaches: d', seconds, and beside them all pairs in plain torch.

`algorithm`: one made for that question alone, exact, where there is one (a k-d tree, a hull, sweeps); with SciPy only.

python benchmarks/counted_cells.py [--n 100000] [--only nearest] [--json FILE]

As many threads as torch takes for the network and for all pairs, one for the algorithms; float64, tokens uniform in the
box. `exact_seconds` is scaled from 256 queries, the best of six runs; `error` is the largest difference from the exact
reduction on them. Where `sources` is true queries meet other tokens than themselves: the nearest of a second cloud.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

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


def dilation(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Fuzzy: places y_0 with memberships y_1, spread by a cone."""
    return torch.minimum(y[None, :, 1:], 1 - 4 * (x[:, None, :1] - y[None, :, :1]).abs()).amax(1)


def k_d_tree(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    from scipy.spatial import cKDTree

    return torch.from_numpy(cKDTree(y.numpy()).query(x.numpy())[0]).unsqueeze(-1)


def hull(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The farthest point is a corner of the convex hull."""
    from scipy.spatial import ConvexHull

    return distances(x, y[torch.from_numpy(ConvexHull(y.numpy()).vertices).long()]).amax(1)


def sweeps(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Running maxima of y_1 ± 4 y_0 from the left and from the right."""
    order = y[:, 0].argsort()
    place, value = y[order, 0], y[order, 1]
    at = torch.searchsorted(place, x[:, 0].contiguous(), right=True)
    low = torch.full((1,), -torch.inf, dtype=x.dtype)
    left = torch.cat([low, (value + 4 * place).cummax(0).values])[at] - 4 * x[:, 0]
    right = torch.cat([(value - 4 * place).flip(0).cummax(0).values.flip(0), low])[at] + 4 * x[:, 0]
    return torch.maximum(left, right).unsqueeze(-1)


# name, formula, d, ε, queries against other sources; the same for tokens x (q, d) and y (n, d): all pairs, and quickly
CASES: list[tuple[str, str, int, float, bool, Pair, Pair | None]] = [
    ("farthest", "max(norm(x-y))", 2, 3e-2, False, lambda x, y: distances(x, y).amax(1), hull),
    ("nearest", "min(norm(x-y))", 2, 3e-2, True, lambda x, y: distances(x, y).amin(1), k_d_tree),
    ("nearest", "min(norm(x-y))", 3, 1e-1, True, lambda x, y: distances(x, y).amin(1), k_d_tree),
    ("envelope", "max(y[1]-4*abs(x[0]-y[0]))", 2, 2e-2, False, envelope, sweeps),
    ("fuzzy dilation", "max(min(y[1], 1-4*abs(x[0]-y[0])))", 2, 2e-2, False, dilation, None),
    ("self-tuned attention", f"sum({TUNED}*y)/sum({TUNED})", 1, 1e-2, False, tuned, None),
]


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    rows = []
    for name, source, d, epsilon, others, exact, quick in (case for case in CASES if options.only in case[0]):
        c = sumformer.construct(source, epsilon, d=d)
        verified, checked = verification(c)
        draw = partial(torch.rand, 1, options.n, d, dtype=torch.float64)
        X = draw(generator=torch.Generator().manual_seed(0))
        Z = draw(generator=torch.Generator().manual_seed(1)) if others else None
        call = partial(c, X, sources=Z)
        against = X[0] if Z is None else Z[0]
        wanted = torch.cat([exact(piece, against) for piece in X[0, :QUERIES].split(16)])
        slow = exact_seconds(lambda x, _, f=exact, y=against: f(x, y), X[0])
        special = None
        if quick is not None and find_spec("scipy") is not None:
            torch.testing.assert_close(quick(X[0, :QUERIES], against), wanted, rtol=1e-9, atol=1e-9)
            special = seconds(lambda f=quick, x=X[0], y=against: f(x, y))
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
            "algorithm": None if quick is None else quick.__name__,
            "algorithm_seconds": special,
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
