"""A certified network on a GPU against attention, in one run: milliseconds and errors on random and on cluster inputs.

    python benchmarks/certified_attention_gpu.py [--n 1048576] [--json FILE]

Gaussian attention exp(−c‖x−y‖²), d = 2, ε = 1e-3: c = 4 with float32 in and out and float64 inside, c = 1 in pure
float32, and c = 64 as the first, certified for up to n tokens (its degrees are beyond the kernels: torch runs them);
needs torch and numpy only. The network runs through the kernels (as launched, and as a CUDA graph) and,
with SUMFORMER_KERNELS=0, without them. Peers: scaled_dot_product_attention in bfloat16 and float32 on the same
logits, the exact sum chunk by chunk in float32, KeOps where installed. Errors are against the exact sum in float64, on
512 queries.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from importlib.util import find_spec

import torch
from torch import Tensor

import sumformer

COMMAND = "python benchmarks/certified_attention_gpu.py --json benchmarks/results/certified_attention_h200.json"


def target(c: int) -> str:
    """The mean of y under the weights exp(−c‖x−y‖²)."""
    return f"sum(exp(-{c}*norm2(x-y))*y)/sum(exp(-{c}*norm2(x-y)))"


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


def exact(queries: Tensor, x: Tensor, c: int, chunk: int = 64) -> Tensor:
    """The sum in the dtype of x, `chunk` queries at a time."""
    out = []
    for q in queries.to(x.dtype).split(chunk):
        weight = (-c * ((q[:, None] - x[None]) ** 2).sum(-1)).exp()
        out.append(weight @ x / weight.sum(-1, keepdim=True))
    return torch.cat(out)


def chunked(x: Tensor, c: int, chunk: int = 512) -> Tensor:
    """The exact sum by matrix products, `chunk` queries at a time."""
    out, square = [], c * (x * x).sum(-1)
    for q, own in zip(x.split(chunk), square.split(chunk), strict=True):
        weight = (2 * c * q @ x.T - square - own.unsqueeze(-1)).exp_()
        out.append(weight @ x / weight.sum(-1, keepdim=True))
    return torch.cat(out)


def sdpa(x: Tensor, dtype: torch.dtype, c: int) -> Tensor:
    """Logits 2c x·y − c‖y‖² as a dot product of width 8 (padded, so that fused kernels apply)."""
    zeros = x.new_zeros(len(x), 5)
    query = torch.cat([x, torch.ones_like(x[:, :1]), zeros], dim=-1).to(dtype)
    key = torch.cat([2 * c * x, -c * (x * x).sum(-1, keepdim=True), zeros], dim=-1).to(dtype)
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


def keops(x: Tensor, c: int) -> Tensor:
    """The same by KeOps, without an n × n buffer."""
    from pykeops.torch import LazyTensor

    weight = (-c * ((LazyTensor(x[:, None]) - LazyTensor(x[None])) ** 2).sum(-1)).exp()
    out: Tensor = weight @ x / weight.sum(1)
    return out


def graph_of(way: Callable[[Tensor], Tensor], x: Tensor) -> Callable[[], None]:
    """One captured call."""
    way(x), way(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        way(x)
    return graph.replay


def without_kernels(way: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def run(x: Tensor) -> Tensor:
        os.environ["SUMFORMER_KERNELS"] = "0"
        try:
            return way(x)
        finally:
            os.environ["SUMFORMER_KERNELS"] = "1"

    return run


def measure(c: int, dtype: str, n: int, tokens_of: str = "any") -> dict[str, object]:
    construction = sumformer.construct(target(c), 1e-3, d=2, dtype=dtype, n=tokens_of)
    network = construction.network.cuda()
    plain = torch.compile(network, fullgraph=True, dynamic=True)
    ways: dict[str, Callable[[Tensor], Tensor]] = {
        "network, compiled, without kernels": without_kernels(lambda x: plain(x[None])[0]),
        "network, kernels": lambda x: network(x[None])[0],
        "network, eager, without kernels": without_kernels(lambda x: network(x[None])[0]),
        "SDPA bfloat16": lambda x: sdpa(x, torch.bfloat16, c),
        "SDPA float32": lambda x: sdpa(x, torch.float32, c),
        "exact chunked float32": lambda x: chunked(x, c),
    }
    if find_spec("pykeops"):
        ways["KeOps float32"] = lambda x: keops(x, c)
    result: dict[str, object] = {
        "target": target(c),
        "dtype": dtype,
        "certified_error": construction.certificate.total,
        "latent_dimension": construction.certificate.latent_dimension,
    }
    tokens = inputs(n)
    for name, way in ways.items():
        row: dict[str, object] = {}
        outputs: dict[str, Tensor] = {}
        heavy = not name.startswith("network")
        try:
            if not heavy:
                row["ms"] = milliseconds(lambda way=way: way(tokens["uniform"]))
            else:
                way(tokens["uniform"][:4096])  # loads what the first call loads
            torch.cuda.reset_peak_memory_stats()
            held = torch.cuda.memory_allocated()
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            for kind, x in tokens.items():
                start.record()
                outputs[kind] = way(x)[:512].clone()
                stop.record()
                torch.cuda.synchronize()
                row.setdefault("ms", start.elapsed_time(stop))
            row["peak_MiB"] = (torch.cuda.max_memory_allocated() - held) / 2**20
            for kind, x in tokens.items():
                row[f"error_{kind}"] = float((outputs[kind].double() - exact(x[:512], x.double(), c)).abs().max())
        except RuntimeError as error:
            row["failed"] = str(error).splitlines()[0]
        result[name] = row
        print(name, row, flush=True)
    kernels = ways["network, kernels"]
    result["network, kernels, CUDA graph, ms"] = milliseconds(graph_of(kernels, tokens["uniform"]))
    if tokens_of == "any":
        large = torch.rand(8 * n, 2, device="cuda")
        result["network, kernels, CUDA graph, 8n, ms"] = milliseconds(graph_of(kernels, large))
        result["network, kernels, 8n, ms"] = milliseconds(lambda: kernels(large))
    first, second = kernels(tokens["uniform"]), kernels(tokens["uniform"])
    result["two runs agree bit for bit"] = bool(torch.equal(first, second))
    return result


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=2**20)
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    result: dict[str, object] = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "n": options.n,
        "mixed": measure(4, "mixed", options.n),
        "float32": measure(1, "float32", options.n),
        "sharp": measure(64, "mixed", options.n, f"..{options.n}"),
        "command": COMMAND,
    }
    text = json.dumps(result, indent=2)
    print(text)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
