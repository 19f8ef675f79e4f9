"""Tiles of straight-line code for Σ_k φ_β(x_k): every feature is a product a·b of two values at hand, added by one FMA.

Where there are many, all β with 0 < |β| ≤ m fall into orbits under rotations of (β_1, …, β_d). One member of each orbit
is written down; the same code on the turned coordinates gives the others, from the same tokens in the cache.
Chebyshev polynomials are made as D_k = 2 T_k, a feature as 2^s φ_β, s coordinates with β_c > 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from math import comb

from sumformer.kernels.power_sums_cover import Exponents, cover
from sumformer.kernels.power_sums_rules import LIMIT, ROUNDINGS, Chebyshev, Monomials, folds, steps

Operation = tuple[int, int, int, int]
MULTIPLY, FMS, FMS_TWO, FEATURE = range(4)
"""v_i v_j; v_i v_j − v_k; v_i v_j − 2; the next sum += v_i v_j, or v_i where j is −1."""
RESTS = (1, 2, 4, 8)


def most(chebyshev: bool) -> int:
    """Features of a tile: two registers of 255 for each monomial, little more than one for Chebyshev polynomials."""
    return 164 if chebyshev else 96


@dataclass(frozen=True)
class Tile:
    """`code`: (kind, i, j, k), values numbered in order behind the d coordinates; its sums are of `features`.

    Where `minus` is not None, a sum is of D_a D_b = D_(a+b) + D_(a−b), a + b the feature and a − b in `minus`.
    `rest`: after how many periods of `power_sums_ptx` a feature with one chain is carried; 0 for one that has two.
    """

    code: tuple[Operation, ...]
    features: tuple[Exponents, ...]
    minus: tuple[Exponents | None, ...]
    rest: tuple[int, ...]

    @cached_property
    def slots(self) -> tuple[int, ...]:
        """The place of each feature, and of its row: those that are carried together stand together."""
        order = sorted(range(len(self.rest)), key=self.rest.__getitem__)
        return tuple(order.index(f) for f in range(len(order)))


@cache
def tiles(d: int, degree: int, chebyshev: bool) -> tuple[Tile, ...]:
    """The sums of one member of each orbit."""
    every, around, size = exponents(d, degree), turns(d, degree, chebyshev), most(chebyshev)
    rule = Chebyshev(sides=d > 2 and len(every) > around * size) if chebyshev else Monomials()
    return tuple(_Code(d, chebyshev, *part).tile() for part in cover(every, around, size, rule))


def turns(d: int, degree: int, chebyshev: bool) -> int:
    """Rotations, by d / turns each: as few as leave one tile, as short orbits are made more than once; else d.

    Of d = 4, two rotations leave (C(m+4, 4) + C(m/2+2, 2)) / 2 orbits, the latter those of (a, b, a, b).
    """
    count = comb(degree + d, d)
    if count - 1 <= most(chebyshev):
        return 1
    return 2 if d == 4 and (count + comb(degree // 2 + 2, 2)) // 2 - 1 <= most(chebyshev) else d


@cache
def recipes(d: int, degree: int, chebyshev: bool) -> tuple[tuple[int, int, float], ...]:
    """For each β (row, minus, scale): its sum is scale · (that of the row − that of minus, unless it is −1).

    Rows are numbered by tile, then by turn, then by slot of the tile.
    """
    rows: dict[Exponents, tuple[int, Exponents | None]] = {}
    start, around = 0, turns(d, degree, chebyshev)
    for tile in tiles(d, degree, chebyshev):
        size = len(tile.features)
        for turn in range(around):
            back = d - turn * d // around
            for slot, beta, less in zip(tile.slots, tile.features, tile.minus, strict=True):
                rows.setdefault(beta[back:] + beta[:back], (start + turn * size + slot, less))
        start += around * size
    out = []
    for beta in exponents(d, degree)[1:]:
        row, less = rows[beta]
        scale = 0.5 ** sum(b > 0 for b in beta) if chebyshev else 1.0
        out.append((row, -1 if less is None else rows[less][0], scale))
    return tuple(out)


@cache
def exponents(d: int, degree: int) -> tuple[Exponents, ...]:
    """All β with |β| ≤ degree, by total degree, then the largest first coordinate first."""
    bars = combinations(range(degree + d), d)
    every = (tuple(b - a - 1 for a, b in zip((-1, *bar), bar, strict=False)) for bar in bars)
    return tuple(sorted(every, key=lambda beta: (sum(beta), [-b for b in beta])))


class _Code:
    """Values by rising degree, each before its first use; features with a factor in common one after the other."""

    def __init__(self, d: int, chebyshev: bool, values: list[Exponents], features: list[Exponents]) -> None:
        self.d, self.chebyshev, self.values, self.features = d, chebyshev, values, features
        self.at = {tuple(int(i == c) for i in range(d)): c for c in range(d)}
        self.highest = max(sum(beta) for beta in (*features, *values))
        self.makes: list[Operation] = []
        self.error = [0] * d
        for value in sorted(values, key=lambda beta: (sum(beta), beta)):
            self.makes.append(self.made(value))
            self.at[value] = len(self.at)

    def tile(self) -> Tile:
        order = self.order()
        minus = tuple(self.less(i, j) for _, i, j in order)
        rest = tuple(self.rest(*way, less, way[0] in minus) for way, less in zip(order, minus, strict=True))
        name = self.names(order)
        code, done = [], self.d
        for _, one, other in order:
            for value in range(done, max(one, other) + 1):
                if value in name:
                    kind, i, j, k = self.makes[value - self.d]
                    code.append((kind, name[i], name[j], name[k]))
            code.append((FEATURE, name[one], name[other], 0))
            done = max(done, one + 1, other + 1)
        return Tile(tuple(code), tuple(beta for beta, _, _ in order), minus, rest)

    def names(self, order: list[tuple[Exponents, int, int]]) -> dict[int, int]:
        """The values that features need, or values that they need, numbered anew."""
        used = {*range(-1, self.d), *(v for way in order for v in way[1:])}
        for value in range(len(self.at) - 1, self.d - 1, -1):
            used.update(self.makes[value - self.d][1:] if value in used else ())
        return {value: i - 1 for i, value in enumerate(sorted(used))}

    def order(self) -> list[tuple[Exponents, int, int]]:
        """(β, i, j), i ≤ j, or j = −1 for a value itself: those around one j that are the first to have it."""
        ways = {
            beta: min(self.factors(beta), key=lambda pair: (pair[1], pair[0]), default=()) for beta in self.features
        }
        found = [(beta, *(pair or (self.at[beta], -1))) for beta, pair in ways.items()]
        return sorted(found, key=lambda way: (max(way[1:]), way[2] < 0, way[1]))

    def rest(self, beta: Exponents, i: int, j: int, less: Exponents | None, lends: bool) -> int:
        """For how many periods one chain will do: r of them make 28 r roundings, and the carry one.

        Two chains and a carry every period, 16 roundings, stay within 1e-6 Σ|φ| in any case. More must find room in
        what is stated for |t| ≤ 1, 2 k² u for T_k, and the values leave unused; sums that others take off have two.
        """
        if not self.chebyshev or lends:
            return 0
        feature = self.error[i] + (self.error[j] if j >= 0 else 0)
        room = LIMIT * sum(b * b for b in beta) - feature
        if less is None:
            return max((r for r in RESTS if 28 * r + 1.2 <= room + ROUNDINGS), default=0)
        room -= feature + self.error[self.at[less]] + ROUNDINGS
        return max((r for r in RESTS if 2 * (28 * r + 1.2) <= room), default=0)

    def made(self, value: Exponents) -> Operation:
        support = [c for c in range(self.d) if value[c]]
        if not self.chebyshev or len(support) > 1:
            i, j = min(self.factors(value), key=max)
            self.error.append(self.error[i] + self.error[j] + 1)
            return MULTIPLY, i, j, 0
        c = support[0]
        a, b = steps(self.degrees(c, self.values), self.highest)[value[c]]
        self.error.append(
            2 * (self.error[self.pure(c, a)] + self.error[self.pure(c, b)])
            + (self.error[self.pure(c, a - b)] if a > b else 0)
            + 1
        )
        if a == b:
            return FMS_TWO, self.pure(c, a), self.pure(c, b), 0
        return FMS, self.pure(c, a), self.pure(c, b), self.pure(c, a - b)

    def factors(self, beta: Exponents) -> list[tuple[int, int]]:
        """All (i, j), i ≤ j, of values at hand whose product is the feature, or holds it; [] for a value itself."""
        pairs = []
        for alpha, i in self.at.items():
            rest = tuple(b - a for a, b in zip(alpha, beta, strict=True))
            apart = not self.chebyshev or not any(a and b for a, b in zip(alpha, rest, strict=True))
            if apart and i <= self.at.get(rest, -1):
                pairs.append((i, self.at[rest]))
        if self.chebyshev and self.d == 1 and beta not in self.at:
            a, b = folds(self.degrees(0, self.at), self.highest)[beta[0]]
            pairs.append((self.pure(0, b), self.pure(0, a)))
        return pairs

    def less(self, i: int, j: int) -> Exponents | None:
        """What D_a D_b of one coordinate holds beside D_(a+b); a − b is at hand, so that its sum is had directly."""
        if not self.chebyshev or self.d > 1 or j < 0:
            return None
        degree = {place: beta[0] for beta, place in self.at.items()}
        return (abs(degree[j] - degree[i]),)

    def degrees(self, c: int, values: Iterable[Exponents]) -> frozenset[int]:
        return frozenset([1, *(beta[c] for beta in values if beta[c] == sum(beta))])

    def pure(self, c: int, k: int) -> int:
        return self.at[tuple(k if i == c else 0 for i in range(self.d))]
