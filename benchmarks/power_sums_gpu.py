"""Power sums on a GPU: milliseconds, floors and errors for n = 10⁷.

python benchmarks/power_sums_gpu.py [--n 10000000] [--json FILE]

Floor: the larger of the bytes of x at the copy rate and n·d' float32 multiply-adds at the rate of a loop of independent
ones, both measured here. Four inputs take turns, so that none is found in the cache. `ms` is one call in a captured
graph of four, `launched_ms` one call as Python launches it, `first_s` the first call, which plans (`plan_s`) and
compiles. `multiplied` are the multiply-adds of the sums for a feature and token, of which one is the floor's.
`error` is against float64 features of 10⁵ tokens, over Σ|φ|; `of_stated` is over what the contract states.

Beside it: `read_ms`, in a graph, is the sum of the coordinates alone, which reads the same bytes; `chunked_ms` is
`phi(piece).sum(1)` over pieces of 2¹⁷ tokens in float32, as one would write it; `compiled_ms` is `phi(x).sum(1)` under
`torch.compile`, up to 100 features.

What bounds it, by the counters of an H200: sums in registers issue in 72 % of the cycles, as six in ten multiply-adds
read three registers that are not at hand from the one before, which takes two cycles (a loop of independent ones reads
two). Products keep the tensor cores busy for 70 to 82 % of the cycles; what else is issued, values, loads, conversions,
does not run beside them: products that take 64 cycles and multiply-adds that take 44 take 109 together. Products in
TF32, three for each of float32, take 6.2 cycles each and keep other instructions away for 4 to 5 of them; with three
more to split each value, few features would take no less than now, and sums are cut off at 2⁻²⁵ of the largest summand.
"""
# ruff: noqa: ANN001, RUF005

from __future__ import annotations

import argparse
import json
import time
from math import comb

import torch
import triton
import triton.language as tl

from sumformer.experiments.gpu_bench.timing import milliseconds, peak_bytes, replayed
from sumformer.kernels.power_sums import plan_of
from sumformer.nn import PolynomialFeatures
from sumformer.nn.power_sums import power_sums

CASES = [(1, 16), (1, 64), (2, 12), (2, 60), (3, 12), (4, 6), (4, 12)]


@triton.jit
def multiply_adds(out, steps, CHAINS: tl.constexpr) -> None:
    a = tl.arange(0, 128).to(tl.float32) * 1e-9 + 0.999
    sums = ()
    for i in tl.static_range(CHAINS):
        sums = sums + (a + i,)
    for _ in range(steps):
        for _unrolled in tl.static_range(8):
            after = ()
            for i in tl.static_range(CHAINS):
                after = after + (tl.fma(sums[i], a, a),)
            sums = after
    total = sums[0]
    for i in tl.static_range(1, CHAINS):
        total += sums[i]
    tl.store(out + tl.program_id(0) * 128 + tl.arange(0, 128), total)


def rates() -> tuple[float, float]:
    """Bytes and multiply-adds a second."""
    buffer = torch.empty(2**30, dtype=torch.uint8, device="cuda")
    copied = 2 * buffer.numel() / milliseconds(lambda: buffer.clone()) * 1e3
    programs, steps, chains = 8 * torch.cuda.get_device_properties(0).multi_processor_count, 4000, 32
    out = torch.empty(programs * 128, device="cuda")
    call = milliseconds(lambda: multiply_adds[(programs,)](out, steps, chains, num_warps=4))
    return copied, programs * 128 * steps * 8 * chains / call * 1e3


def accuracy(x: torch.Tensor, degree: int, basis: str) -> tuple[float, float]:
    """The largest error over Σ|φ|, and over what the contract states."""
    d, tokens = x.shape[2], x.shape[1]
    phi = PolynomialFeatures(d, degree, basis).double().cuda()
    wanted, size = 0.0, 0.0
    for piece in x.double().split(10**4, 1):
        features = phi(piece)
        wanted, size = wanted + features.sum(1), size + features.abs().sum(1)
    off = (power_sums(x, degree, basis) - wanted).abs()
    features = degree * size if basis == "monomial" else 2.0 * d * degree**2 * tokens
    return float((off / size).max()), float((off / (1e-6 * size + 2.0**-24 * features)).max())


def peers(inputs: list[torch.Tensor], degree: int, basis: str) -> dict[str, float | None]:
    """Milliseconds of what one would write without `power_sums`, launched."""
    phi = PolynomialFeatures(inputs[0].shape[2], degree, basis).cuda()

    def chunked() -> torch.Tensor:
        return torch.stack([phi(piece).sum(1) for piece in inputs[0].split(2**17, 1)]).sum(0)

    found: dict[str, float | None] = {"chunked_ms": milliseconds(chunked, 3), "compiled_ms": None}
    if phi.d_out <= 100:
        torch.compiler.reset()
        compiled = torch.compile(lambda x: phi(x).sum(1), fullgraph=True)
        found["compiled_ms"] = milliseconds(lambda: compiled(inputs[0]), 3)
    return found


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=10**7)
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    copied, added = rates()
    rows = []
    for d, degree in CASES:
        inputs = [torch.rand(1, options.n, d, device="cuda") for _ in range(4)]
        width = comb(degree + d, d) - 1
        floor = max(4 * options.n * d / copied, options.n * width / added) * 1e3
        read = replayed(lambda inputs=inputs: [x.sum(1) for x in inputs], 5)
        for basis in ("monomial", "chebyshev"):
            row = {"d": d, "degree": degree, "basis": basis, "latent_dimension": width}
            began = time.perf_counter()
            plan = plan_of(d, degree, basis == "chebyshev")
            row["plan_s"] = time.perf_counter() - began
            row["way"] = "products" if plan.wide else "direct"
            row["multiplied"] = 128 * len(plan.products) / width if plan.wide else 1.0
            power_sums(inputs[0], degree, basis)
            torch.cuda.synchronize()
            row["first_s"] = time.perf_counter() - began

            def all_four(inputs=inputs, degree=degree, basis=basis) -> None:
                for x in inputs:
                    power_sums(x, degree, basis)

            captured = replayed(all_four, 5)
            row["ms"] = None if captured is None else captured / 4
            row["launched_ms"] = milliseconds(lambda x=inputs[1], k=degree, b=basis: power_sums(x, k, b), 5)
            row["floor_ms"] = floor
            row["over_floor"] = None if captured is None else row["ms"] / floor
            row["read_ms"] = None if read is None else read / 4
            row |= peers(inputs, degree, basis)
            row["peak_MiB"] = peak_bytes(lambda x=inputs[2], k=degree, b=basis: power_sums(x, k, b)) / 2**20
            row["error"], row["of_stated"] = accuracy(inputs[3][:, : 10**5].contiguous(), degree, basis)
            print(json.dumps(row), flush=True)
            rows.append(row)
        del inputs
    result = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "n": options.n,
        "copy_bytes_per_s": copied,
        "multiply_adds_per_s": added,
        "rows": rows,
        "command": "python benchmarks/power_sums_gpu.py --json benchmarks/results/power_sums_h200.json",
    }
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
