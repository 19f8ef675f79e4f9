"""What the checker answers: verified or not, the recomputed bound B', and every reason against."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verification:
    """`verified` iff nothing failed and B' = `bound` ≤ `claimed` ≤ `epsilon`; `terms` are the parts of B'."""

    verified: bool
    bound: float
    claimed: float
    epsilon: float
    terms: tuple[tuple[str, float], ...]
    failures: tuple[str, ...]
    assumptions: tuple[str, ...]
    seconds: float


class Unproved(Exception):
    """A step of the proof fails; the message names the field or the term. Caught by `check`, never shown raw."""
