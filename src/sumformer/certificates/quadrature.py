"""d_p(f, N) = (∫ ‖f(X) − N(X)‖_p^p dX)^{1/p}, measured at random points: it may refute a bound, never prove one.

`low` lies six standard errors below the estimate, or where a tail bound puts it, if that is higher: errors that few
points meet, raised to the power p, spread so much that their standard error says nothing. A claim below it is refuted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf, log
from typing import Any

import torch
from torch import Tensor

from sumformer.targets.opaque import OpaqueTarget
from sumformer.targets.target import Target

POINTS = 2**15
CHUNK = 2**12


@dataclass(frozen=True)
class Quadrature:
    """The estimate `worst`, `low` well below it, and the X with the largest ‖f − N‖_p."""

    worst: float
    low: float
    witness: Tensor
    trials: int
    seconds: float
    cut_short: bool = False

    @property
    def by_kind(self) -> dict[str, float]:
        return {"quadrature": self.worst}

    def refutes(self, bound: float) -> bool:
        return self.low > bound


def quadrature(
    target: Target | OpaqueTarget, network: Any, p: float, *, points: int = POINTS, seed: int = 0, seconds: float = 5.0
) -> Quadrature:
    """Over box^n, n the number of tokens of the target; stops after `seconds`."""
    start = time.perf_counter()
    n, box = target.tokens.minimum, target.input_box
    d = box.d
    low, high = (torch.tensor([float(v) for v in ends], dtype=torch.float64) for ends in (box.lower, box.upper))
    volume = float((high - low).prod()) ** n
    generator = torch.Generator().manual_seed(seed)
    errors, worst, witness = [], -1.0, torch.zeros(n, d)
    for _ in range(0, points, CHUNK):
        X = low + (high - low) * _strata(n, d, generator)
        with torch.no_grad():
            size = (target(X) - network(X)).abs().pow(p).sum((1, 2)).nan_to_num(nan=inf)  # N is no number there
        errors.append(size)
        if float(size.max()) > worst:
            worst, witness = float(size.max()), X[int(size.argmax())]
        if time.perf_counter() - start > seconds:
            break
    every = torch.cat(errors)
    if not bool(every.isfinite().all()):
        return Quadrature(inf, inf, witness, len(every), time.perf_counter() - start)
    mean, spread = float(every.mean()), float(every.std()) / len(every) ** 0.5
    estimate, below = ((volume * v) ** (1 / p) for v in (mean, max(mean - 6 * spread, least_mean(every))))
    return Quadrature(estimate, below, witness, len(every), time.perf_counter() - start, len(every) < points)


def least_mean(values: Tensor) -> float:
    """A lower bound of the mean of what `values` ≥ 0 are samples of, but for odds of 10⁻⁹: max_t t · P(value ≥ t).

    k of N samples reach the k-th largest t. Were fewer than λ < k to be expected, k or more would come with odds below
    exp(−(k log(k/λ) − k + λ)) (Chernoff); λ is where that is 10⁻⁹/N, for every k at once.
    """
    largest = values.sort(descending=True).values
    k = torch.arange(1, len(values) + 1, dtype=values.dtype, device=values.device)
    odds = log(len(values)) + 9 * log(10)
    low, high = torch.zeros_like(k), k.clone()
    for _ in range(60):
        middle = (low + high) / 2
        rare = k * (k / middle).log() - k + middle >= odds
        low, high = torch.where(rare, middle, low), torch.where(rare, high, middle)
    return float((largest * low).max()) / len(values)


def _strata(n: int, d: int, generator: torch.Generator) -> Tensor:
    """CHUNK points of [0, 1)^{n×d}, each coordinate once in every interval of length 1/CHUNK."""
    places = torch.argsort(torch.rand(n * d, CHUNK, generator=generator), dim=1).T
    offsets = torch.rand(CHUNK, n * d, generator=generator, dtype=torch.float64)
    return ((places + offsets) / CHUNK).reshape(CHUNK, n, d)
