"""A permutation γ with γ(i) ∈ A_{γ(i+1)}: a Hamiltonian path along the arrows j → k, j ∈ A_k, j ≠ k.

Tried in this order: 0, 1, …, n−1, which most patterns have; a proof that there is none (two tokens that nobody else
attends to, or that attend to nobody else, or a token that some other neither leads to nor comes from); all subsets, for
n ≤ 20; then growing a path (towards the token with fewest ways on) and turning it where it is stuck.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

EXACT = 20
_TURNS = 60
"""Turns per token before the search is given up."""
UNPROVED = "which does not prove there is none"

Matrix = NDArray[np.bool_]


def is_path(matrix: Matrix, path: Sequence[int]) -> bool:
    """Every token once, each attending to the one before it; `matrix[k, j]` says j ∈ A_k."""
    order = np.asarray(path)
    once = len(order) == len(matrix) and bool((np.sort(order) == np.arange(len(matrix))).all())
    return once and bool(matrix[order[1:], order[:-1]].all())


def find_path(matrix: Matrix) -> tuple[tuple[int, ...] | None, str]:
    """γ, or None and the reason, which says whether it is a proof."""
    n = len(matrix)
    if is_path(matrix, range(n)):
        return tuple(range(n)), ""
    why = _obstacle(matrix)
    if why:
        return None, why
    if n <= EXACT:
        path = _over_subsets(matrix)
        return path, "" if path else "no Hamiltonian path: all subsets were tried"
    path = _search(matrix)
    return path, "" if path else f"no Hamiltonian path found in {_TURNS * n} turns, {UNPROVED}"


def _obstacle(matrix: Matrix) -> str:
    """A proof that there is no path, in words; empty when none of these is at hand."""
    others = matrix & ~np.eye(len(matrix), dtype=np.bool_)
    unseen, blind = np.flatnonzero(~others.any(0)), np.flatnonzero(~others.any(1))
    if len(unseen) > 1:
        return f"no Hamiltonian path: no other token attends to token {unseen[0]}, nor to token {unseen[1]}"
    if len(blind) > 1:
        return f"no Hamiltonian path: tokens {blind[0]} and {blind[1]} attend to no other token"
    forward, backward = _closure(others.T, 0), _closure(others, 0)
    apart = np.flatnonzero(~(forward | backward))
    if len(apart):
        return f"no Hamiltonian path: no chain of connections joins token 0 and token {apart[0]}"
    return ""


def _closure(arrows: Matrix, start: int) -> NDArray[np.bool_]:
    reached = np.zeros(len(arrows), dtype=np.bool_)
    reached[start] = True
    front = reached
    while front.any():
        front = arrows[front].any(0) & ~reached
        reached = reached | front
    return reached


def _over_subsets(matrix: Matrix) -> tuple[int, ...] | None:
    """ends[U] = the tokens at which a path through exactly U can end, as bits: v is one if ends[U∖v] meets A_v."""
    n = len(matrix)
    seen_by = [int(sum(1 << j for j in np.flatnonzero(row))) for row in matrix]
    subsets = np.arange(1 << n, dtype=np.uint32)
    size = np.bitwise_count(subsets)
    ends = np.zeros(1 << n, dtype=np.uint32)
    ends[1 << np.arange(n)] = 1 << np.arange(n)
    for count in range(2, n + 1):
        layer = subsets[size == count]
        for v in range(n):
            with_v = layer[(layer >> v) & 1 == 1]
            ends[with_v] |= ((ends[with_v ^ (1 << v)] & seen_by[v]) != 0).astype(np.uint32) << v
    path: list[int] = []
    rest, allowed = (1 << n) - 1, (1 << n) - 1
    while rest:
        last = int(ends[rest]) & allowed
        if not last:
            return None
        v = last.bit_length() - 1
        path.append(v)
        rest, allowed = rest ^ (1 << v), seen_by[v]
    return tuple(reversed(path))


def _search(matrix: Matrix) -> tuple[int, ...] | None:
    """Grow a path at its end; where it is stuck, put a left-out token between two others, or turn the path."""
    n, chance = len(matrix), random.Random(0)
    onward = [[int(k) for k in np.flatnonzero(matrix[:, j]) if k != j] for j in range(n)]
    ways = [len(next_ones) for next_ones in onward]
    path = [min(range(n), key=lambda k: int(matrix[k].sum()))]
    left = set(range(n)) - set(path)
    for _ in range(_TURNS * n):
        if not left:
            return tuple(path)
        open_ways = [k for k in onward[path[-1]] if k in left]
        if open_ways:
            path.append(min(open_ways, key=lambda k: (sum(i in left for i in onward[k]), ways[k])))
            left.discard(path[-1])
        elif not _insert(matrix, path, left):
            turned = _turn(matrix, onward, path, chance)
            if turned is None:
                return None
            path = turned
    return tuple(path) if not left else None


def _insert(matrix: Matrix, path: list[int], left: set[int]) -> bool:
    """x_i → u → x_{i+1} for a left-out u, or u in front."""
    order = np.asarray(path)
    for u in left:
        places = np.flatnonzero(matrix[u, order[:-1]] & matrix[order[1:], u])
        if len(places) or matrix[order[0], u]:
            path.insert(int(places[0]) + 1 if len(places) else 0, u)
            left.discard(u)
            return True
    return False


def _turn(matrix: Matrix, onward: list[list[int]], path: list[int], chance: random.Random) -> list[int] | None:
    """The same tokens with another end. x_m → x_i closes a ring x_i … x_m; enter it from x_{i−1} at another x_j:

    x_0 … x_{i−1} → x_j … x_m → x_i … x_{j−1}. A ring of the whole path may be opened anywhere.
    """
    order = np.asarray(path)
    position = {token: i for i, token in enumerate(path)}
    closings = [position[k] for k in onward[path[-1]] if k in position]
    chance.shuffle(closings)
    for i in closings:
        entries = np.arange(1, len(path)) if i == 0 else i + np.flatnonzero(matrix[order[i:], order[i - 1]])
        entries = entries[entries > i]
        if len(entries):
            j = int(entries[chance.randrange(len(entries))])
            return [*path[:i], *path[j:], *path[i:j]]
    return None
