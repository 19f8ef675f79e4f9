"""A_k^t ⊆ [n]: who attends to whom in step t of a saved pattern, by the definitions and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sumformer.certificates.checker.verification import Unproved

Relation = NDArray[np.bool_]
_MASK = (1 << 32) - 1
MOST = 2**31  # an argument that torch takes, whatever is added to it


def connections(pattern: Any, step: Any, n: int) -> Relation:
    """[k, j] = j ∈ A_k of step `step` mod p."""
    if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step < MOST:
        raise ValueError("expected a step")
    every = steps(pattern, n)
    return every[step % len(every)]


def steps(pattern: Any, n: int) -> list[Relation]:
    """The p relations of a pattern."""
    if not isinstance(pattern, dict):
        raise ValueError("expected a pattern")
    numbers = {key: value for key, value in pattern.items() if key != "type"}
    if not all(isinstance(v, int) and not isinstance(v, bool) and 0 <= v < MOST for v in numbers.values()):
        raise ValueError(f"expected integers from 0 to {MOST - 1} as a pattern's arguments")
    return _steps(pattern.get("type"), numbers, n)


def reach(every: list[Relation]) -> int:
    """The least s for which every token has heard of all: S¹ = A⁰, S^t_k = ∪ S^{t−1}_j over j ∈ A_k^{(t−1) mod p}."""
    heard, n = every[0], len(every[0])
    for s in range(1, n * len(every) + 1):
        if heard.all():
            return s
        heard = every[s % len(every)].astype(np.int64) @ heard > 0
    raise Unproved("the pattern's connections do not reach all tokens")


def _steps(kind: Any, a: dict[str, int], n: int) -> list[Relation]:
    k, j = np.arange(n)[:, None], np.arange(n)[None, :]
    if kind == "Window" and a.keys() == {"w"}:
        return [abs(j - k) <= a["w"]]
    if kind == "Strided" and a.keys() == {"l"} and a["l"]:
        return [abs(j - k) <= a["l"], j % a["l"] == k % a["l"]]
    if kind == "Fixed" and a.keys() == {"l"} and a["l"]:
        ends = (j == n - 1) | ((j + 1) % a["l"] == 0)
        return [j // a["l"] == k // a["l"], (j == k) | ends]
    if kind == "Star" and a.keys() == {"w"}:
        return [(abs(j - k) <= a["w"]) | (j == 0) | (k == 0)]
    if kind == "Longformer" and a.keys() == {"w", "g"} and a["g"]:
        return [(abs(j - k) <= a["w"]) | (j < a["g"]) | (k < a["g"])]
    if kind == "BigBird" and a.keys() == {"w", "g", "r", "seed"} and a["r"] and a["g"]:
        return [(abs(j - k) <= a["w"]) | (j < a["g"]) | (k < a["g"]) | _drawn(a["r"], a["seed"], n)]
    if kind == "Random" and a.keys() == {"r", "seed"} and a["r"]:
        return [(j == k) | _drawn(a["r"], a["seed"], n)]
    raise ValueError(f"unknown pattern {kind!r}")


def _drawn(r: int, seed: int, n: int) -> Relation:
    """One token from each of r stretches [⌊sn/r⌋, ⌊(s+1)n/r⌋), at the share u(seed, k, s) of its length.

    Of r ≥ n stretches every one has at most one token, and every token is one's.
    """
    if r >= n:
        return np.ones((n, n), dtype=np.bool_)
    out = np.zeros((n, n), dtype=np.bool_)
    for k in range(n):
        row = _mix(_mix(k) ^ _mix(seed & _MASK))
        for s in range(r):
            first, end = s * n // r, (s + 1) * n // r
            column = _mix(s + seed % 1_000_003 + (1 << 20)) >> 1
            if end > first:
                out[k, first + ((_round(((row | 1) * (column | 1)) & _MASK) * (end - first)) >> 32)] = True
    return out


def _round(x: int) -> int:
    x = ((x ^ (x >> 16)) * 0x45D9F3B) & _MASK
    return x ^ (x >> 15)


def _mix(x: int) -> int:
    return _round(_round((x + 0x9E3779B9) & _MASK))
