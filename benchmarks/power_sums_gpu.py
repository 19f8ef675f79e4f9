"""Power sums on a GPU: milliseconds, floors and errors for n = 10⁷; needs torch and numpy only.

python benchmarks/power_sums_gpu.py [--n 10000000] [--json FILE]

Floors: the bytes of x at the measured copy rate, and n·d' multiply-adds at 33 T/s (float32 without matrix units, and
float64 with them, by the data sheet of an H200). Errors are against float64 features of the first 10⁵ tokens.
"""

from __future__ import annotations

import argparse
import json

import torch

from sumformer.experiments.gpu_bench.timing import milliseconds, peak_bytes
from sumformer.nn import PolynomialFeatures
from sumformer.nn.power_sums import power_sums

CASES = [(1, 16), (2, 12), (3, 12), (4, 6), (4, 12)]
MULTIPLY_ADDS = 33e12


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=10**7)
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    buffer = torch.empty(2**30, dtype=torch.uint8, device="cuda")
    rate = 2 * buffer.numel() / milliseconds(lambda: buffer.clone()) * 1e3
    rows = []
    for d, degree in CASES:
        x = torch.rand(1, options.n, d, device="cuda")
        for basis in ("monomial", "chebyshev"):
            head = x[:, : 10**5].contiguous()
            phi = PolynomialFeatures(d, degree, basis).double().cuda()
            wanted, size = 0.0, 0.0
            for piece in head.double().split(10**4, 1):
                features = phi(piece)
                wanted, size = wanted + features.sum(1), size + features.abs().sum(1)
            floor = max(4 * options.n * d / rate, options.n * phi.d_out / MULTIPLY_ADDS) * 1e3
            row = {
                "d": d,
                "degree": degree,
                "basis": basis,
                "latent_dimension": phi.d_out,
                "ms": milliseconds(lambda x=x, k=degree, b=basis: power_sums(x, k, b), 5),
                "floor_ms": floor,
                "peak_MiB": peak_bytes(lambda x=x, k=degree, b=basis: power_sums(x, k, b)) / 2**20,
                "error": float(((power_sums(head, degree, basis) - wanted).abs() / size).max()),
            }
            row["over_floor"] = row["ms"] / floor
            print(json.dumps(row), flush=True)
            rows.append(row)
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "n": options.n, "rows": rows}
    result["command"] = "python benchmarks/power_sums_gpu.py --json benchmarks/results/power_sums_h200.json"
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
