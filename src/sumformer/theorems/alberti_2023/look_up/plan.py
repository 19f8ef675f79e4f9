"""How many cells along each side: the least that ε asks for, at most what the table and float64 can hold."""

from __future__ import annotations

from math import ceil

from sumformer.algebra.rounding import gamma, shown_up
from sumformer.errors import RefusedError
from sumformer.targets.lipschitz import LipschitzBound
from sumformer.targets.target import Target
from sumformer.theorems.alberti_2023.look_up.code import largest_code
from sumformer.theorems.alberti_2023.look_up.table import entries
from sumformer.theorems.built import SLACK

ACCEPT = 0.9  # of ε: leaves room for a checker whose enclosures are a little wider, for rounding and for ramps
MOST_ENTRIES = {"step": 2**15, "relu": 2**12}  # hidden units of one layer; with ReLU coordinates of the stream too
FAR = 2**31  # |x| over the side of a cell: edges are then rounded by less than 2^-21 of it
NEAR = 2.0**-4  # how far rounding may move a key, whose neighbours are 1 away


def cells_per_axis(
    f: Target, modulus: LipschitzBound, epsilon: float, activation: str, roundings: int, share: float
) -> int:
    """The least k with SLACK·L/k ≤ ACCEPT·ε/share; `share` turns a sup bound into one of the norm asked for."""
    most = most_cells(f, activation, roundings)
    room = ACCEPT * epsilon / share
    wanted = SLACK * modulus.value * (1 + 2.0**-20) / max(room, 2.0**-1000)
    needed = max(1, ceil(min(wanted, 2.0**40)))
    if needed <= most:
        return needed
    reachable = SLACK * modulus.value * (1 + 2.0**-20) / most / ACCEPT * share * (1 + 1e-9)
    cells, n = needed**f.d, f.tokens.maximum
    reason = f"it would take {needed} cells along each side: {entries(cells, n)} table entries"
    limit = MOST_ENTRIES[activation]
    raise RefusedError(
        f"a look-up table cannot reach ε = {epsilon:g}",
        [
            f"{reason} (own cell × multiset of the others); {most} along each side fit into {limit} entries",
            f"the modulus of all tokens over half the box is {modulus.value:.4g}",
            f"reachable here: ε = {shown_up(reachable)}",
        ],
        reachable,
    )


def most_cells(f: Target, activation: str, roundings: int) -> int:
    """The largest k whose table fits; at least 1."""
    low, high = 1, 2
    while _fits(f, high, activation, roundings):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _fits(f, middle, activation, roundings) else (low, middle)
    return low


def _fits(f: Target, per_axis: int, activation: str, roundings: int) -> bool:
    n, cells = f.tokens.maximum, per_axis**f.d
    if entries(cells, n) > MOST_ENTRIES[activation]:
        return False
    if per_axis > 1 and any(
        max(abs(low), abs(high)) > (high - low) / per_axis * FAR
        for low, high in zip(f.box.lower, f.box.upper, strict=True)
    ):
        return False
    total = n * largest_code(cells, n)
    return key_error(total, cells * (total + 1), roundings) <= NEAR


def key_error(total: int, largest: int, roundings: int) -> float:
    """|fl(A·q + n·mean − θ) − (A·q + Σ − θ)| for Σ ≤ total and keys ≤ largest, the head within γ_roundings."""
    u = 2.0**-53
    return float(total) * gamma(roundings, u) * (1 + 1e-9) + gamma(8, u) * 3.0 * float(largest)
