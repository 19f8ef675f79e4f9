"""Σ_k φ_β(x_k) as products of matrices: β_c = a_c + h_c b_c, 0 ≤ a_c < h_c, and the sum over tokens of A_i(x) B_j(x).

A holds the products of p_{a_c}(t_c), B those of p_{h_c b_c}(t_c), both by rising degree, eight and eight in a set. Only
the pairs of sets that hold a |β| ≤ m are multiplied. h_c = 1 leaves the coordinate to B, h_c = m + 1 to A. Powers
multiply to powers; for Chebyshev polynomials 2 T_{hb} T_a = T_{hb+a} + T_{hb−a}, so that
    S_{hb+a} = 2 M_{b,a} − S_{h(b−1)+(h−a)},   S_a = M_{0,a},   S_{hb} = M_{b,0}.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, combinations_with_replacement, product

Exponents = tuple[int, ...]
EIGHT = 8
"""Rows of a set: half of the rows, or all columns, of one multiplication in the tensor cores."""


@cache
def exponents(d: int, degree: int) -> tuple[Exponents, ...]:
    """All β with |β| ≤ degree, by total degree, then the largest first coordinate first."""
    bars = combinations(range(degree + d), d)
    every = (tuple(b - a - 1 for a, b in zip((-1, *bar), bar, strict=False)) for bar in bars)
    return tuple(sorted(every, key=lambda beta: (sum(beta), [-b for b in beta])))


@dataclass(frozen=True)
class Cover:
    """`radices`: h; `wide`: T_k of a coordinate that is split are made in float64, and all sums are in float64."""

    degree: int
    radices: tuple[int, ...]
    wide: bool = True

    def side(self, which: int) -> list[Exponents]:
        """The exponents of A or B by rising degree."""
        last = self.degree + 1
        ranges = [range(0, last, h) if which else range(min(h, last)) for h in self.radices]
        return sorted((row for row in product(*ranges) if sum(row) <= self.degree), key=lambda row: (sum(row), row))

    @cached_property
    def sets(self) -> tuple[tuple[int, tuple[Exponents, ...]], ...]:
        """(side, at most eight exponents): those of A, then those of B."""
        found = []
        for which in (0, 1):
            rows = self.side(which)
            found += [(which, tuple(rows[start : start + EIGHT])) for start in range(0, len(rows), EIGHT)]
        return tuple(found)

    @cached_property
    def products(self) -> tuple[tuple[int, int, int], ...]:
        """(set, set, set): the rows of the first two times the columns of the third.

        The pairs of a set of B are taken two and two; what is left over has the first set of A in common.
        """
        left = [i for i, (which, _) in enumerate(self.sets) if which == 0]
        out, over = [], []
        for j in range(len(left), len(self.sets)):
            room = self.degree - sum(self.sets[j][1][0])
            mates = [i for i in left if sum(self.sets[i][1][0]) <= room]
            if len(mates) % 2:
                over.append(j)
                mates = mates[1:]
            out += [(mates[i], mates[i + 1], j) for i in range(0, len(mates), 2)]
        over += over[-1:] if len(over) % 2 else []
        return (*out, *((over[i], over[i + 1], 0) for i in range(0, len(over), 2)))

    @cached_property
    def entries(self) -> dict[tuple[Exponents, Exponents], int]:
        """(a, h b) → the place of Σ A B among the 16 · 8 sums of each product, one product after the other."""
        found: dict[tuple[Exponents, Exponents], int] = {}
        for number, (first, second, third) in enumerate(self.products):
            for half, rows in enumerate((first, second)):
                for (r, row), (c, column) in product(enumerate(self.sets[rows][1]), enumerate(self.sets[third][1])):
                    key = (column, row) if self.sets[third][0] == 0 else (row, column)
                    found.setdefault(key, (number * 2 * EIGHT + half * EIGHT + r) * EIGHT + c)
        return found

    @cached_property
    def pairs(self) -> dict[tuple[Exponents, Exponents], int]:
        """(a, h b) of every β with 0 < |β| ≤ m, and its number, those with one b together."""
        betas = exponents(len(self.radices), self.degree)[1:]
        found = [
            tuple(zip(*((k % h, k - k % h) for k, h in zip(beta, self.radices, strict=True)), strict=True))
            for beta in betas
        ]
        return {
            (a, b): i
            for i, (a, b) in enumerate(sorted(found, key=lambda pair: (sum(pair[1]), pair[1], sum(pair[0]), pair[0])))
        }

    def recipes(self, chebyshev: bool, entries: dict[tuple[Exponents, Exponents], int]) -> list[dict[int, float]]:
        """For each β with 0 < |β| ≤ m the entries whose sum, each times its factor, is Σ φ_β."""
        out = []
        for beta in exponents(len(self.radices), self.degree)[1:]:
            found: dict[int, float] = {}
            for parts in product(*(_chain(k, h, chebyshev) for k, h in zip(beta, self.radices, strict=True))):
                factor = 1.0
                for _, _, f in parts:
                    factor *= f
                entry = entries[tuple(a for a, _, _ in parts), tuple(b for _, b, _ in parts)]
                found[entry] = factor
            out.append(found)
        return out

    def folded(self, coordinate: int) -> bool:
        return 1 < self.radices[coordinate] <= self.degree

    def error(self, beta: Exponents) -> float:
        """What Σ φ_β is off by for each token in units of 2⁻²⁴, |t| ≤ 1 being exact, Chebyshev polynomials.

        T_k costs k (k − 1) / 2 by recurrence. What coordinates that are not split cost does not grow, as one value is a
        factor of all that are put together. A sum of float32 is off by at most 17 units, which count where it is one of
        several: one alone is as good as its own Σ|φ|.
        """
        apart = sum(k * (k - 1) / 2 for c, k in enumerate(beta) if not self.folded(c))
        chains = [_chain(k, h, True) for k, h in zip(beta, self.radices, strict=True)]
        summed = 17 if not self.wide and any(len(chain) > 1 for chain in chains) else 0
        total = 0.0
        for parts in product(*chains):
            factor, off, left, right = 1.0, 0.0, 0, 0
            for c, (a, b, f) in enumerate(parts):
                factor, left, right = factor * abs(f), left + (a > 0), right + (b > 0)
                if self.folded(c):
                    off += self.value_error(c, a) + self.value_error(c, b)
            total += factor * (off + max(0, left - 1) + max(0, right - 1) + summed)
        return total + apart

    def value_error(self, c: int, k: int) -> float:
        """Of T_k of a coordinate that is split: T_(hb) is T_b of T_h."""
        if self.wide:
            return float(k > 0)
        h = self.radices[c]
        b = k // h
        return b * b * h * (h - 1) / 2 + b * (b - 1) / 2 if b else k * (k - 1) / 2


@cache
def cover(d: int, degree: int, chebyshev: bool) -> Cover:
    """The fewest products, then the fewest sets; Chebyshev polynomials to within 2 Σ β_c² units of 2⁻²⁴ a token."""

    def cost(left: list[int], right: list[int]) -> tuple[int, int]:
        pairs = sum(bisect_right(right[::EIGHT], degree - least) for least in left[::EIGHT])
        return (pairs + 1) // 2, -(-len(left) // EIGHT) - (-len(right) // EIGHT)

    return _best(d, degree, chebyshev, cost, wide=True)


@cache
def direct_cover(d: int, degree: int, chebyshev: bool) -> Cover:
    """The fewest rows."""
    return _best(d, degree, chebyshev, lambda left, right: (len(left) + len(right), 0), wide=False)


def _best(
    d: int, degree: int, chebyshev: bool, cost: Callable[[list[int], list[int]], tuple[int, int]], wide: bool
) -> Cover:
    def price(radices: tuple[int, ...]) -> tuple[int, int]:
        left = _degrees([range(h) for h in radices], degree)
        return cost(left, _degrees([range(0, degree + 1, h) for h in radices], degree))

    for radices in sorted(combinations_with_replacement(range(1, degree + 2), d), key=lambda r: (price(r), r)):
        found = Cover(degree, radices, wide)
        betas = exponents(d, degree) if chebyshev else ()
        if all(found.error(beta) <= 2 * sum(b * b for b in beta) for beta in betas):
            return found
    raise AssertionError("a coordinate may always be left whole")


def _degrees(ranges: list[range], degree: int) -> list[int]:
    found = [0]
    for values in ranges:
        found = [a + b for a in found for b in values if a + b <= degree]
    return sorted(found)


@cache
def _chain(k: int, h: int, chebyshev: bool) -> tuple[tuple[int, int, float], ...]:
    """(a, h b, factor) of what Σ p_k is put together from."""
    b, a = divmod(k, h)
    if not chebyshev or not a or not b:
        return ((a, h * b, 1.0),)
    return ((a, h * b, 2.0), *((i, j, -f) for i, j, f in _chain(h * b - a, h, True)))
