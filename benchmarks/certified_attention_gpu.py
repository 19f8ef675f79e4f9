"""A certified network on a GPU against attention, in one run: milliseconds and errors on random and on cluster inputs.

    python benchmarks/certified_attention_gpu.py [--n 1048576] [--json FILE]

Gaussian attention exp(−4‖x−y‖²), d = 2, ε = 1e-3, float32 in and out, float64 inside; needs torch and numpy only.
Peers: scaled_dot_product_attention in bfloat16 and float32 on the same logits. Errors are against the exact sum in
float64, on 512 queries.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

import torch
from torch import Tensor

import sumformer

TARGET = "sum(exp(-4*norm2(x-y))*y)/sum(exp(-4*norm2(x-y)))"


def milliseconds(run: Callable[[], Tensor], repeats: int = 10) -> float:
    """Median of CUDA event times after two warm-ups."""
    run(), run()
    times = []
    for _ in range(repeats):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop))
    return sorted(times)[len(times) // 2]


def exact(queries: Tensor, x: Tensor) -> Tensor:
    """The sum in float64, 64 queries at a time."""
    x = x.double()
    out = []
    for q in queries.double().split(64):
        weight = (-4 * ((q[:, None] - x[None]) ** 2).sum(-1)).exp()
        out.append(weight @ x / weight.sum(-1, keepdim=True))
    return torch.cat(out)


def sdpa(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Logits 8x·y − 4‖y‖² as a dot product of width 8 (padded, so that fused kernels apply)."""
    zeros = x.new_zeros(len(x), 5)
    query = torch.cat([x, torch.ones_like(x[:, :1]), zeros], dim=-1).to(dtype)
    key = torch.cat([8 * x, -4 * (x * x).sum(-1, keepdim=True), zeros], dim=-1).to(dtype)
    value = torch.cat([x, x.new_zeros(len(x), 6)], dim=-1).to(dtype)
    out = torch.nn.functional.scaled_dot_product_attention(
        query[None, None], key[None, None], value[None, None], scale=1.0
    )
    return out[0, 0, :, :2].float()


def inputs(n: int) -> dict[str, Tensor]:
    """Uniform tokens, and the hard case: one token at a corner against a cluster at the opposite one."""
    generator = torch.Generator(device="cuda").manual_seed(0)
    uniform = torch.rand(n, 2, generator=generator, device="cuda")
    cluster = 0.99 + 0.01 * torch.rand(n, 2, generator=generator, device="cuda")
    cluster[0] = 0.0
    return {"uniform": uniform, "cluster": cluster}


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=2**20)
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    construction = sumformer.construct(TARGET, 1e-3, d=2, dtype="mixed")
    network = construction.network.cuda()
    compiled = torch.compile(network, fullgraph=True, dynamic=True)
    ways: dict[str, Callable[[Tensor], Tensor]] = {
        "network, eager": lambda x: network(x[None])[0],
        "network, compiled": lambda x: compiled(x[None])[0],
        "SDPA bfloat16": lambda x: sdpa(x, torch.bfloat16),
        "SDPA float32": lambda x: sdpa(x, torch.float32),
    }
    result: dict[str, object] = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "n": options.n,
        "certified_error": construction.certificate.total,
        "latent_dimension": construction.certificate.latent_dimension,
    }
    tokens = inputs(options.n)
    for name, way in ways.items():
        row: dict[str, object] = {}
        repeats = 10 if name.startswith("network") else 1
        try:
            row["ms"] = milliseconds(lambda way=way: way(tokens["uniform"]), repeats)
            torch.cuda.reset_peak_memory_stats()
            held = torch.cuda.memory_allocated()
            outputs = {kind: way(x)[:512] for kind, x in tokens.items()}
            row["peak_MiB"] = (torch.cuda.max_memory_allocated() - held) / 2**20
            for kind, x in tokens.items():
                row[f"error_{kind}"] = float((outputs[kind].double() - exact(x[:512], x)).abs().max())
        except RuntimeError as error:
            row["failed"] = str(error).splitlines()[0]
        result[name] = row
        print(name, row, flush=True)
    large = torch.rand(8 * options.n, 2, device="cuda")
    result["network, compiled, 8n, ms"] = milliseconds(lambda: compiled(large[None])[0], 5)
    text = json.dumps(result, indent=2)
    print(text)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
