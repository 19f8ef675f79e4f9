"""Tiles of straight-line code for Σ_k φ_β(x_k): every feature is a product a·b of two values at hand, added by one FMA.

All β with 0 < |β| ≤ m fall into orbits under (β_1, …, β_d) → (β_2, …, β_d, β_1). One member of each orbit is written
down; running the same code on the rotated coordinates gives the others, so there are d times fewer instructions to
compile. The members are cut into tiles that fit the registers of a thread, so that a tile needs few values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations

Exponents = tuple[int, ...]
Cell = tuple[Exponents, Exponents]
MULTIPLY, TWICE, FMS, FMS_ONE, FEATURE = range(5)
"""v_i v_j; 2 v_i; v_i v_j − v_k; v_i v_j − 1; the next sum += v_i v_j, or v_i where j is −1."""
MOST = 93
"""Features of a tile: two registers each, of 255."""


@dataclass(frozen=True)
class Tile:
    """`code`: (kind, i, j, k), values numbered in order behind the d coordinates; `features`: what its sums are."""

    code: tuple[tuple[int, int, int, int], ...]
    features: tuple[Exponents, ...]


@cache
def tiles(d: int, degree: int, chebyshev: bool) -> tuple[Tile, ...]:
    """The sums of one member of each orbit, in as few tiles as fit, of equal size."""
    cells = [_sides(beta, degree, chebyshev) for beta in _representatives(d, degree)]
    return tuple(_cut(cells, -(-len(cells) // MOST), d, chebyshev))


@cache
def places(d: int, degree: int, chebyshev: bool) -> dict[Exponents, int]:
    """β → the row of its sum: rows are numbered by tile, then by turn, then by feature of the tile."""
    out: dict[Exponents, int] = {}
    start = 0
    for tile in tiles(d, degree, chebyshev):
        size = len(tile.features)
        for turn in range(d):
            for i, beta in enumerate(tile.features):
                out.setdefault(beta[d - turn :] + beta[: d - turn], start + turn * size + i)
        start += d * size
    return out


@cache
def exponents(d: int, degree: int) -> tuple[Exponents, ...]:
    """All β with |β| ≤ degree, by total degree, then the largest first coordinate first."""
    bars = combinations(range(degree + d), d)
    every = (tuple(b - a - 1 for a, b in zip((-1, *bar), bar, strict=False)) for bar in bars)
    return tuple(sorted(every, key=lambda beta: (sum(beta), [-b for b in beta])))


def _representatives(d: int, degree: int) -> list[Exponents]:
    """The lexicographically largest member of each orbit."""
    return sorted({max(beta[r:] + beta[:r] for r in range(d)) for beta in exponents(d, degree)[1:]})


def _sides(beta: Exponents, degree: int, chebyshev: bool) -> Cell:
    """β as a sum of two exponents; of one coordinate, xⁱ = x^(qa) x^b and T_i stays whole."""
    d = len(beta)
    if d == 1:
        q = max(2, round(degree**0.5))
        low = 0 if chebyshev else (beta[0] - 1) % q + 1
        return (beta[0] - low,), (low,)
    half = d // 2
    return (0,) * half + beta[half:], beta[:half] + (0,) * (d - half)


def _cut(cells: list[Cell], count: int, d: int, chebyshev: bool) -> list[Tile]:
    """Halves with little code, again and again."""
    if count == 1:
        return [_program(cells, d, chebyshev)]
    orders: list[Callable[[Cell], object]] = [lambda c: (sum(c[0]), c), lambda c: (sum(c[1]), c[1], c[0])]
    for k in range(d):
        orders.append(lambda c, k=k: (c[0][k] + c[1][k], c))  # type: ignore[misc]
        orders.append(lambda c, k=k: (c[0][k] + c[1][k], c[1], c[0]))  # type: ignore[misc]
    first = count // 2
    at = len(cells) * first // count
    halves = ((part[:at], part[at:]) for part in (sorted(cells, key=order) for order in orders))  # type: ignore[arg-type]
    left, right = min(halves, key=lambda pair: sum(len(_program(part, d, chebyshev).code) for part in pair))
    return _cut(left, first, d, chebyshev) + _cut(right, count - first, d, chebyshev)


def _program(cells: list[Cell], d: int, chebyshev: bool) -> Tile:
    """Row by row, each value made just before its first use."""
    values = _Values(d, chebyshev)
    features = []
    for row, column in sorted(cells, key=lambda c: (sum(c[0]), c[0], sum(c[1]), c[1])):
        used = [values.make(side) for side in (row, column) if any(side)]
        i, j = used if len(used) == 2 else values.factors.get(used[0], (used[0], -1))
        values.code.append((FEATURE, i, j, 0))
        features.append(tuple(a + b for a, b in zip(row, column, strict=True)))
    return Tile(_pruned(values.code, d), tuple(features))


def _pruned(code: list[tuple[int, int, int, int]], d: int) -> tuple[tuple[int, int, int, int], ...]:
    """Without the values that nothing uses: a feature may have taken their factors instead."""
    names: list[int] = []
    used: set[int] = set()
    kept = []
    for op in code:
        names.append(-2 if op[0] == FEATURE else d + sum(n >= 0 for n in names))
    for op, name in zip(reversed(code), reversed(names), strict=True):
        if op[0] == FEATURE or name in used:
            kept.append((op, name))
            used.update(op[1 : 1 + _OPERANDS[op[0]]])
    renamed = {c: c for c in range(-1, d)}
    out = []
    for op, name in reversed(kept):
        count = _OPERANDS[op[0]]
        i, j, k = (renamed[v] if c < count else 0 for c, v in enumerate(op[1:]))
        out.append((op[0], i, j, k))
        if name >= 0:
            renamed[name] = len(renamed) - 1
    return tuple(out)


_OPERANDS = (2, 1, 3, 2, 2)
_NEAR = 6


class _Values:
    """Powers, or Chebyshev polynomials, and their products, each made once."""

    def __init__(self, d: int, chebyshev: bool) -> None:
        self.d, self.chebyshev, self.count = d, chebyshev, d
        self.at = {self.pure(c, 1): c for c in range(d)}
        self.doubled: dict[int, int] = {}
        self.reached = [1] * d
        self.factors: dict[int, tuple[int, int]] = {}
        self.code: list[tuple[int, int, int, int]] = []

    def pure(self, c: int, k: int) -> Exponents:
        return tuple(k if i == c else 0 for i in range(self.d))

    def make(self, beta: Exponents) -> int:
        if beta not in self.at:
            support = [c for c in range(self.d) if beta[c]]
            if len(support) > 1:
                made = self._mixed(beta, support)
            else:
                made = (self._chebyshev if self.chebyshev else self._power)(support[0], beta[support[0]])
            self.at[beta] = made
        return self.at[beta]

    def _emit(self, kind: int, i: int, j: int = 0, k: int = 0) -> int:
        self.code.append((kind, i, j, k))
        self.count += 1
        if kind == MULTIPLY:
            self.factors[self.count - 1] = (i, j)
        return self.count - 1

    def _mixed(self, beta: Exponents, support: list[int]) -> int:
        if not self.chebyshev:
            for c in support:
                below = tuple(b - (i == c) for i, b in enumerate(beta))
                if below in self.at:
                    return self._emit(MULTIPLY, self.at[below], c)
        c = support[-1]
        rest = tuple(0 if i == c else b for i, b in enumerate(beta))
        return self._emit(MULTIPLY, self.make(rest), self.make(self.pure(c, beta[c])))

    def _power(self, c: int, k: int) -> int:
        """xᵏ = xᵃ x^(k−a): from powers at hand, else from the two halves."""
        pairs = [a for a in range(1, k // 2 + 1) if self.pure(c, a) in self.at and self.pure(c, k - a) in self.at]
        a = pairs[0] if pairs else k // 2
        return self._emit(MULTIPLY, self.make(self.pure(c, k - a)), self.make(self.pure(c, a)))

    def _chebyshev(self, c: int, k: int) -> int:
        """T_k = 2 T_a T_b − T_(b−a), a + b = k: with a = 1 up to where the recurrence has come, else the two halves.

        For |t| ≤ 1 both keep |T̂_k − T_k| ≤ k² u: by the recurrence from T_1 it is at most k(k−1)/2 u, and by halves
        2(e_a + e_b) + e_(b−a) + u ≤ k² − 2/3 if e_j ≤ j² − 2/3. Going on from a T_k made by halves would not.
        """
        near = k <= max(_NEAR, self.reached[c] + 1)
        a = 1 if near else k // 2
        small, large = self.make(self.pure(c, a)), self.make(self.pure(c, k - a))
        if near:
            self.reached[c] = max(k, self.reached[c])
        if small not in self.doubled:
            self.doubled[small] = self._emit(TWICE, small)
        if k == 2 * a:
            return self._emit(FMS_ONE, self.doubled[small], large)
        return self._emit(FMS, self.doubled[small], large, self.make(self.pure(c, k - 2 * a)))
