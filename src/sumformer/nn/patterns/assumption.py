"""Assumption 1 of S on a pattern A_k^l, l = 0 … p−1, for n tokens:

(1) k ∈ A_k^l for all k and l;
(2) a permutation γ with γ(i) ∈ ∪_l A^l_{γ(i+1)}: a Hamiltonian path;
(3) a finite reach s: with S_k^1 = A_k^0, S_k^t = ∪_{j ∈ A_k^{(t−1) mod p}} S_j^{t−1}, the least s with S_k^s = [n]
    for all k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sumformer.errors import InputError
from sumformer.nn.patterns.hamiltonian_path import UNPROVED, find_path, is_path
from sumformer.nn.patterns.reach import reach

LARGEST = 4096
"""Tokens up to which the assumption is examined: it works on n² bits."""


@dataclass(frozen=True)
class AssumptionReport:
    """What was found. `path` is γ, checked edge by edge; `reach` is s; `reasons` names every clause that fails."""

    holds: bool
    self_loops: bool
    path: tuple[int, ...] | None
    reach: int | None
    reasons: tuple[str, ...]

    @property
    def violated(self) -> bool:
        """A clause is proved to fail; where the search for γ was only given up, none is."""
        return any(UNPROVED not in reason for reason in self.reasons)

    def __str__(self) -> str:
        if self.holds:
            return f"Assumption 1 holds: γ found, reach s = {self.reach}"
        head = "Assumption 1 is violated:" if self.violated else "Assumption 1 was not shown:"
        return "\n".join([head, *(f"  - {reason}" for reason in self.reasons)])


def examine(steps: Sequence[NDArray[np.bool_]]) -> AssumptionReport:
    """`steps[l][k, j]` says whether j ∈ A_k^l."""
    n = steps[0].shape[0]
    if n > LARGEST:
        raise InputError(f"assumption: expected n ≤ {LARGEST}, got {n}; the patterns look alike at every length")
    reasons = [
        f"(1) token {int(np.flatnonzero(~matrix.diagonal())[0])} is not in its own A_k^{l}"
        for l, matrix in enumerate(steps)  # noqa: E741
        if not matrix.diagonal().all()
    ]
    self_loops = not reasons
    union = np.logical_or.reduce(steps)
    path, why = find_path(union)
    if path is not None and not is_path(union, path):
        path, why = None, f"the path found does not check, {UNPROVED}"
    if path is None:
        reasons.append(f"(2) {why}")
    s, why = reach(steps)
    if s is None:
        reasons.append(f"(3) {why}")
    return AssumptionReport(not reasons, self_loops, path, s, tuple(reasons))
