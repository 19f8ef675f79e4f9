"""Construct, re-check and attack the targets the README speaks of, in one run: seconds, d', certified over worst found.

python benchmarks/certified_targets.py [--only gravity] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time

import sumformer
from sumformer.certificates.attack import attack
from sumformer.certificates.checker import check


def attention(weight: str) -> str:
    """The mean of y under normalised weights."""
    return f"sum({weight}*y)/sum({weight})"


GAUSS, SHARP = attention("exp(-norm2(x-y))"), attention("exp(-4*norm2(x-y))")
TARGETS = {
    "gaussian": GAUSS,
    "dot product": attention("exp(2*dot(x,y))"),
    "soft rank": "mean(sigmoid((x-y)/0.1))",
    "density": "mean(exp(-norm2(x-y)/(2*0.35**2)))",
    "gravity": "mean((y-x)/sqrt(norm2(x-y)+0.25)**3)",
}
CASES = [(name, source, d, e, "float64") for name, source in TARGETS.items() for d in (1, 2) for e in (1e-3, 1e-6)]
CASES = [case for case in CASES if not (case[0] == "gravity" and case[2] == 2 and case[3] == 1e-6)]
CASES += [("sharp gaussian", SHARP, 2, 1e-3, "float64"), ("gaussian", GAUSS, 3, 1e-3, "float64")]
CASES += [("gaussian", GAUSS, d, 1e-3, "float32") for d in (1, 2)] + [("sharp gaussian", SHARP, 2, 1e-3, "mixed")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    rows = []
    for name, source, d, epsilon, dtype in (case for case in CASES if options.only in case[0]):
        c = sumformer.construct(source, epsilon, d=d, dtype=dtype)
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            c.save(folder)
            proof = check(folder)
        found = attack(c.target, c.network)
        row = {
            "target": name,
            "d": d,
            "epsilon": epsilon,
            "dtype": dtype,
            "latent_dimension": c.certificate.latent_dimension,
            "construct_seconds": round(c.seconds, 3),
            "verify_seconds": round(time.perf_counter() - start, 2),
            "certified": c.certificate.total,
            "worst_found": found.worst,
            "ratio": c.certificate.total / found.worst,
            "verified": proof.verified,
        }
        print(json.dumps(row), flush=True)
        rows.append(row)
    ratios = [row["ratio"] for row in rows if row["dtype"] == "float64"]
    median = statistics.median(ratios) if ratios else None
    print(f"median certified / worst found over {len(ratios)} float64 cases: {median}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"rows": rows, "median_ratio_float64": median}, file, indent=1)


if __name__ == "__main__":
    main()
