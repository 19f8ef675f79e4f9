"""Power sums on a CPU: milliseconds for n = 10⁶ tokens in float32, the floor, and what one would write instead.

python benchmarks/power_sums.py [--n 1000000] [--json FILE]

Floor: the larger of the bytes of x at the copy rate and n·d' float32 multiply-adds at the rate of a large matrix
product, both measured here. Ours adds in float64, whose products run at half that rate. `features_ms` is
`phi(piece).sum(1)` over pieces of 2¹⁴ tokens, scaled from 10⁵ tokens, and `einsum_ms` the product of the coordinates'
Vandermonde matrices over pieces of as many, which makes all (m + 1)^d monomials; both in float32. `error` is the
largest over Σ|φ| and `einsum_error` that of `einsum`, on 10⁵ tokens, against float64.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from math import comb
from typing import Any

import torch

from sumformer.nn import PolynomialFeatures
from sumformer.nn.power_sums import power_sums

CASES = [(1, 16), (1, 64), (2, 12), (2, 60), (3, 12), (4, 6), (4, 12)]
PIECE, SOME = 2**14, 10**5
AXES = "abcd"


def milliseconds(call: Callable[[], Any], runs: int) -> float:
    """The best after one that is not counted."""
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times[1:])


def rates() -> tuple[float, float]:
    """Bytes and multiply-adds a second."""
    size = 2048
    a, buffer = torch.randn(size, size), torch.randn(2**26)
    out = torch.empty_like(buffer)
    copied = 2 * 4 * len(buffer) / milliseconds(lambda: out.copy_(buffer), 5) * 1e3
    return copied, size**3 / milliseconds(lambda: a @ a, 5) * 1e3


def features(x: torch.Tensor, degree: int, basis: str) -> torch.Tensor:
    phi = PolynomialFeatures(x.shape[2], degree, basis).to(x.dtype)
    return torch.stack([phi(piece).sum(1) for piece in x.split(PIECE, 1)]).sum(0)


def einsum(x: torch.Tensor, degree: int) -> torch.Tensor:
    """Σ_k Π_c x_kc^{β_c} for all β_c ≤ m."""
    axes = AXES[: x.shape[2]]
    form = ",".join(f"n{axis}" for axis in axes) + "->" + axes

    def one(piece: torch.Tensor) -> torch.Tensor:
        return torch.einsum(form, *(torch.linalg.vander(c, N=degree + 1) for c in piece.mT))

    return torch.stack([one(piece) for piece in x[0].split(PIECE)]).sum(0)


def errors(x: torch.Tensor, degree: int, basis: str) -> dict[str, float | None]:
    wanted = features(x.double(), degree, basis)
    phi = PolynomialFeatures(x.shape[2], degree, basis).double()
    size = sum((phi(piece).abs().sum(1) for piece in x.double().split(PIECE, 1)), torch.zeros(()))
    found: dict[str, float | None] = {"einsum_error": None}
    found["error"] = float(((power_sums(x, degree, basis) - wanted).abs() / size).max())
    if basis == "monomial":
        exact = einsum(x.double(), degree)
        found["einsum_error"] = float(((einsum(x, degree) - exact).abs() / exact).max())  # x ≥ 0: Σ|φ| is the sum
    return found


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=10**6)
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    copied, added = rates()
    rows = []
    for d, degree in CASES:
        x = torch.rand(1, options.n, d, generator=torch.Generator().manual_seed(0))
        width = comb(degree + d, d) - 1
        floor = max(4 * options.n * d / copied, options.n * width / added) * 1e3
        for basis in ("monomial", "chebyshev"):
            row: dict[str, Any] = {"d": d, "degree": degree, "basis": basis, "latent_dimension": width}
            row["ms"] = milliseconds(lambda x=x, k=degree, b=basis: power_sums(x, k, b), 5)
            row["floor_ms"], row["over_floor"] = floor, row["ms"] / floor
            some = x[:, :SOME]
            once = milliseconds(lambda x=some, k=degree, b=basis: features(x, k, b), 1)
            row["features_ms"] = once * x.shape[1] / some.shape[1]
            row["einsum_ms"] = milliseconds(lambda x=x, k=degree: einsum(x, k), 1) if basis == "monomial" else None
            row |= errors(some, degree, basis)
            print(json.dumps(row), flush=True)
            rows.append(row)
    result = {
        "machine": platform.platform(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "n": options.n,
        "copy_bytes_per_s": copied,
        "multiply_adds_per_s": added,
        "rows": rows,
        "command": "python benchmarks/power_sums.py --json benchmarks/results/power_sums_cpu.json",
    }
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
