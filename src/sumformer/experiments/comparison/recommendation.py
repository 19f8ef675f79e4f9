"""The rule: of those that cannot be told from the best, the cheapest.

1. Latent dimension: the smallest whose validation error (first seed) is within 5 % of the architecture's best.
2. Best: the architecture of least mean validation error over the seeds.
3. Tied with it: mean error ≤ best mean + the standard error of the difference of the two means.
4. Of those tied: equivariant ones before those that depend on the order of tokens, then the fastest at prediction.

Test errors are reported; they choose nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Any

CLOSE = 1.05
RULE = (
    "For each architecture the smallest latent dimension whose validation error is within 5 % of its best; then, of "
    "the architectures whose mean validation error over seeds is within one standard error (of the difference) of the "
    "least, equivariant ones first, the fastest at prediction. Test errors are reported and choose nothing."
)


def smallest_close(errors: Mapping[int, float]) -> int:
    """{d': validation error} → the smallest d' within 5 % of the best."""
    least = min(errors.values())
    return min(latent for latent, error in errors.items() if error <= CLOSE * least)


def recommend(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """rows: name, validation (one error for each seed), milliseconds_per_set, equivariant."""
    best = min(rows, key=lambda row: fmean(row["validation"]))
    tied = [row for row in rows if fmean(row["validation"]) - fmean(best["validation"]) <= _difference(row, best)]
    choice = min(tied, key=lambda row: (not row["equivariant"], row["milliseconds_per_set"]))
    return {
        "architecture": choice["name"],
        "latent": choice["latent"],
        "hidden": choice["hidden"],
        "best": best["name"],
        "tied": [row["name"] for row in tied],
        "rule": RULE,
    }


def _difference(a: Mapping[str, Any], b: Mapping[str, Any]) -> float:
    """Standard error of the difference of two means over seeds; 0 with one seed."""
    return sqrt(sum(_variance_of_mean(row["validation"]) for row in (a, b)))


def _variance_of_mean(values: Sequence[float]) -> float:
    return stdev(values) ** 2 / len(values) if len(values) > 1 else 0.0
