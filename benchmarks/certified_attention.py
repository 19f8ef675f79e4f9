"""A certified network against the exact pairwise computation, in one run: seconds, ratios, differences.

    python benchmarks/certified_attention.py [--n 20000] [--large 1000000] [--json FILE]

Target: Gaussian attention exp(−4‖x−y‖²), d = 2, ε = 1e-3, float64. Peers: the exact sum by matrix products in float64,
and the same as scaled_dot_product_attention in float32 (softmax over 8x·y − 4‖y‖²), which is what a user would write.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

import sumformer

TARGET = "sum(exp(-4*norm2(x-y))*y)/sum(exp(-4*norm2(x-y)))"


def pairwise(x: Tensor, chunk: int = 1024) -> Tensor:
    """The exact sum: one matrix product, one exponential and one matrix product per chunk of queries."""
    out = []
    square = (x * x).sum(-1)
    for q in x.split(chunk):
        weight = (8 * q @ x.T - 4 * square - 4 * (q * q).sum(-1, keepdim=True)).exp_()
        out.append(weight @ x / weight.sum(-1, keepdim=True))
    return torch.cat(out)


def sdpa(x: Tensor) -> Tensor:
    """The same by fused attention: logits 8x·y − 4‖y‖², the last as an extra coordinate."""
    key = torch.cat([8 * x, -4 * (x * x).sum(-1, keepdim=True)], dim=-1)
    query = torch.cat([x, torch.ones_like(x[:, :1])], dim=-1)
    out: Tensor = torch.nn.functional.scaled_dot_product_attention(query[None], key[None], x[None], scale=1.0)
    return out[0]


def seconds(run: Callable[[], Tensor], repeats: int) -> tuple[float, Tensor]:
    """The median time and the last result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        out = run()
        times.append(time.perf_counter() - start)
    return statistics.median(times), out


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    construction = sumformer.construct(TARGET, 1e-3, d=2)
    network = construction.network
    x = torch.rand(options.n, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    network(x[None, :2048])
    ours, y = seconds(lambda: network(x[None])[0], 5)
    exact, wanted = seconds(lambda: pairwise(x), 1)
    fused, approximate = seconds(lambda: sdpa(x.float()), 1)
    large = torch.rand(1, options.large, 2, dtype=torch.float64)
    many, _ = seconds(lambda: network(large), 1)
    result = {
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}",
        "n": options.n,
        "latent_dimension": construction.certificate.latent_dimension,
        "certified_error": construction.certificate.total,
        "network_seconds": ours,
        "pairwise_float64_seconds": exact,
        "sdpa_float32_seconds": fused,
        "ratio_to_pairwise": exact / ours,
        "ratio_to_sdpa": fused / ours,
        "network_difference": float((y - wanted).abs().max()),
        "sdpa_difference": float((approximate - wanted).abs().max()),
        "large_n": options.large,
        "large_n_seconds": many,
        "nanoseconds_per_token": [1e9 * ours / options.n, 1e9 * many / options.large],
    }
    text = json.dumps(result, indent=2)
    print(text)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
