"""The first call of each GPU path in a process of its own with nothing compiled yet: seconds, and what a second costs.

python benchmarks/first_call_gpu.py [--json FILE]

The device, cuBLAS and Triton's own helper are up before the clock starts (`start_s` says how long that took). `kernels`
counts what was compiled at the first call, `more` what a call of another length, an odd one, compiled beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import torch
import triton

CASES = ("layer", "layer-backward", "short-layer", "short-layer-backward", "causal-layer", "certified", "power-sums")


def case(name: str) -> Callable[[int], object]:
    if name == "power-sums":
        from sumformer.nn.power_sums import power_sums

        return lambda more: power_sums(torch.rand(1, 10**5 + more, 4, device="cuda"), 12, "chebyshev")
    if name == "certified":
        import sumformer

        target = "sum(exp(-4*norm2(x-y))*y)/sum(exp(-4*norm2(x-y)))"
        network = sumformer.construct(target, 1e-3, d=2, dtype="mixed").network.cuda()
        return lambda more: network(torch.rand(1, 2**16 + more, 2, device="cuda"))
    from sumformer.nn import SumMixer

    layer = SumMixer(1024).to("cuda", torch.bfloat16)
    rows = 128 if name.startswith("short") else 16384

    def call(more: int) -> object:
        x = torch.randn(1, rows + more, 1024, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        if name.endswith("backward"):
            return layer(x).sum().backward()
        with torch.no_grad():
            return layer(x, is_causal=name.startswith("causal"))

    return call


_HERE = "SUMFORMER_FIRST_CALL"  # set in a process of its own, which begins with an empty cache


def compiled() -> int:
    return sum(name.endswith(".cubin") for _, _, files in os.walk(os.environ["TRITON_CACHE_DIR"]) for name in files)


def measure(name: str) -> dict[str, object]:
    began = time.perf_counter()
    a = torch.randn(256, 256, device="cuda", dtype=torch.bfloat16)
    torch.mm(a, a)
    triton.runtime.driver.active.get_current_device()
    torch.cuda.synchronize()
    row: dict[str, object] = {"case": name, "start_s": time.perf_counter() - began}
    call = case(name)
    for key, count, more in (("first_s", "kernels", 0), ("second_s", "", 0), ("other_length_s", "more", 101)):
        before, began = compiled(), time.perf_counter()
        call(more)
        torch.cuda.synchronize()
        row[key] = time.perf_counter() - began
        if count:
            row[count] = compiled() - before
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", default=None)
    parser.add_argument("--case", choices=CASES, default=None, help="this one alone")
    options = parser.parse_args()
    if _HERE in os.environ:
        print(json.dumps(measure(options.case)))
        return
    rows = []
    for name in CASES if options.case is None else [options.case]:
        with tempfile.TemporaryDirectory() as empty:
            command = [sys.executable, __file__, "--case", name]
            found = subprocess.run(
                command,
                env=os.environ | {"TRITON_CACHE_DIR": empty, _HERE: "1"},
                capture_output=True,
                text=True,
                check=False,
            )
        if found.returncode:
            raise SystemExit(found.stderr)
        rows.append(json.loads(found.stdout.splitlines()[-1]))
        print(json.dumps(rows[-1]), flush=True)
    result = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "cpu_cores": os.cpu_count(),
        "rows": rows,
        "command": "python benchmarks/first_call_gpu.py --json benchmarks/results/first_call_h200.json",
    }
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
