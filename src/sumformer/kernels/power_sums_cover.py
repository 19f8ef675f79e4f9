"""Sets V_1, …, V_T of values such that each feature β, 0 < |β| ≤ m, is a product of two of one V_t, turned or not.

1 and the coordinates are in every V_t for nothing; each other value takes one operation on values of its set. Greedy:
the value that gives most β not reached yet. Then, again and again, a few values are taken out at random (of a fixed
seed), what is missing is put right, and the outcome kept unless it has more values. How values make others is left to
`Rule`: the exponents are numbers of base 2m + 1, so that a product of two monomials is the sum of two numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import count as count_from
from itertools import product
from typing import Protocol

import numpy
from numpy.typing import NDArray

Exponents = tuple[int, ...]
Numbers = NDArray[numpy.int64]
_OUT, _LOOKS, _SLACK, _VALUES, _PATIENCE = 3, 8, 1.02, 64, 3


class Space:
    """`orbit` of a number, 0 where it stands for none with |β| ≤ m; `support`: a bit for each coordinate."""

    def __init__(self, every: tuple[Exponents, ...], turns: int) -> None:
        table = numpy.array(every)
        self.d, self.degree = table.shape[1], int(table.sum(1).max())
        self.base = 2 * self.degree + 1
        place = self.base ** numpy.arange(self.d)
        numbers = table @ place
        turned = [numpy.roll(table, r * self.d // turns, axis=1) @ place for r in range(turns)]
        names, index = numpy.unique(numpy.max(turned, axis=0), return_inverse=True)
        self.orbits = len(names) - 1
        self.orbit = numpy.zeros(self.base**self.d, dtype=numpy.int64)
        self.orbit[numbers] = index
        self.support = numpy.zeros(self.base**self.d, dtype=numpy.int64)
        self.support[numbers] = (table > 0) @ 2 ** numpy.arange(self.d)
        self.units = [int(p) for p in place]

    def read(self, number: int) -> Exponents:
        return tuple(number // u % self.base for u in self.units)


@cache
def pairs(count: int) -> tuple[Numbers, Numbers]:
    """All i ≤ j below `count`."""
    first, second = numpy.triu_indices(count)
    return first, second


class Rule(Protocol):
    """What values give; `have` begins with 0, for 1, and the coordinates."""

    spread: int
    """By how many values the sets may differ before the small ones go first."""
    starts: int
    rounds: int
    """How often to begin, and to try again, over the number of sets: as much as takes well below a second."""

    def sums(self, space: Space, have: Numbers) -> Numbers:
        """The β that are products of two."""

    def candidates(self, space: Space, have: Numbers, sums: Numbers) -> Numbers:
        """The values one operation away; `sums` as above."""

    def adds(self, space: Space, have: Numbers, new: Numbers) -> Numbers:
        """(new, any) numbers: β that each would reach, 0 for none."""

    def ladder(self, space: Space, heights: list[int]) -> list[int]:
        """Values that lead to about so many factors of each coordinate."""


@dataclass(frozen=True)
class Part:
    """One V_t."""

    space: Space
    rule: Rule
    values: tuple[int, ...]

    @cached_property
    def have(self) -> Numbers:
        return numpy.array([0, *self.space.units, *self.values])

    @cached_property
    def sums(self) -> Numbers:
        return self.rule.sums(self.space, self.have)

    @cached_property
    def reached(self) -> Numbers:
        return numpy.unique(self.space.orbit[self.sums])

    @cached_property
    def candidates(self) -> Numbers:
        found = self.rule.candidates(self.space, self.have, self.sums)
        return found[~numpy.isin(found, self.have, kind="table")]

    @cached_property
    def adds(self) -> Numbers:
        return self.space.orbit[self.rule.adds(self.space, self.have, self.candidates)]

    def plus(self, value: int) -> Part:
        return Part(self.space, self.rule, (*self.values, value))

    def without(self, value: int) -> Part:
        """Also without what can no longer be made."""
        kept, left = Part(self.space, self.rule, ()), [v for v in self.values if v != value]
        while left:
            made = numpy.intersect1d(kept.candidates, left)
            if not len(made):
                break
            kept = Part(self.space, self.rule, (*kept.values, *made.tolist()))
            left = [v for v in left if v not in kept.values]
        return kept


def cover(
    every: tuple[Exponents, ...], turns: int, most: int, rule: Rule
) -> list[tuple[list[Exponents], list[Exponents]]]:
    """(V_t, the β it is for, at most `most` of them) for each t; one β of every orbit."""
    space = Space(every, turns)
    count = -(-round(_SLACK * space.orbits) // most) if space.orbits > most else 1
    parts = _search(space, rule, count, most)
    owner = _owners(parts, most)
    out = []
    for t, part in enumerate(parts):
        found = dict(zip(space.orbit[part.sums].tolist(), part.sums.tolist(), strict=True))
        features = [space.read(found[orbit]) for orbit in numpy.flatnonzero(owner == t).tolist()]
        if features:
            out.append(([space.read(v) for v in part.values], features))
    return out


def _search(space: Space, rule: Rule, count: int, most: int) -> list[Part]:
    random = numpy.random.default_rng(0)
    best: list[Part] = []
    for tried in count_from(1):
        start = _completed(_ladders(space, rule, random, count), most, _size(best) if best else _VALUES * count)
        best = start or best
        if best and tried >= rule.starts:
            break
        count += tried % _PATIENCE == 0 and not best
    for i in range(rule.rounds // count):
        parts = list(best)
        if count > 1 and i % 4 == 3:
            t = max(range(count), key=lambda t: len(parts[t].values))
            parts[t] = _ladders(space, rule, random, count)[int(random.integers(count))]
        for _ in range(random.integers(1, _OUT + 1)):
            t = int(random.integers(count))
            if parts[t].values:
                parts[t] = parts[t].without(parts[t].values[int(random.integers(len(parts[t].values)))])
        parts = _completed(parts, most, _size(best))
        if parts and _size(parts) <= _size(best):
            best = parts
    return best


def _size(parts: list[Part]) -> int:
    return sum(len(part.values) for part in parts)


def _ladders(space: Space, rule: Rule, random: numpy.random.Generator, count: int) -> list[Part]:
    """Sets that begin with what leads to some place, from a quarter to half of the degree away."""
    parts = []
    for t in range(count):
        degree = space.degree * (0.15 + 0.35 * (t + 1) / count)
        heights = numpy.floor(random.dirichlet(numpy.ones(space.d)) * degree + 0.5)
        parts.append(Part(space, rule, tuple(rule.ladder(space, [int(h) for h in heights]))))
    return parts


def _completed(parts: list[Part], most: int, size: int) -> list[Part]:
    """Values more until every orbit has an owner; [] if that takes more than `size` values in all."""
    parts = list(parts)
    owner = _owners(parts, most)
    while (owner < 0).any():
        if _size(parts) >= size:
            return []
        load = numpy.bincount(owner[owner >= 0], minlength=len(parts) + 1)
        missing = (owner < 0).astype(float)
        t, chosen = _best(parts, missing, most - load)
        if chosen < 0:
            return []
        parts[t] = parts[t].plus(int(parts[t].candidates[chosen]))
        new = parts[t].reached[missing[parts[t].reached] > 0]
        if load[t] + len(new) <= most:
            owner[new] = t
        else:
            owner = _owners(parts, most)
    return parts


def _best(parts: list[Part], missing: NDArray[numpy.float64], room: Numbers) -> tuple[int, int]:
    """A set that has room, and the candidate of it that reaches most; the small sets first."""
    free = [t for t in range(len(parts)) if room[t] > 0 and len(parts[t].candidates)]
    gains = {t: numpy.minimum(missing[parts[t].adds].sum(1), room[t]) for t in free}
    least = min((len(parts[t].values) for t in free), default=0)
    for spread in (parts[0].rule.spread, 1000):
        t = max((t for t in free if len(parts[t].values) <= least + spread), key=lambda t: gains[t].max(), default=-1)
        if t >= 0 and gains[t].max() > 0:
            return t, int(gains[t].argmax())
    # nothing within one step: what would be within two, of some
    t = min(free, key=lambda t: len(parts[t].values), default=0)
    some = range(0, len(parts[t].candidates), 1 + len(parts[t].candidates) // _LOOKS)
    return t, max(some, key=lambda c: missing[parts[t].plus(int(parts[t].candidates[c])).adds].sum(), default=-1)


def _owners(parts: list[Part], most: int) -> Numbers:
    """For each orbit a set that reaches it, −1 where none that does has room; orbit 0 is nobody's."""
    reach = numpy.zeros((len(parts), parts[0].space.orbits + 1), dtype=bool)
    for t, part in enumerate(parts):
        reach[t, part.reached] = True
    options = reach.sum(0)
    owner: Numbers = numpy.where(options == 1, reach.argmax(0), -1)
    owner[0] = len(parts)
    load = [0] * len(parts)
    for t in range(len(parts)):
        alone = numpy.flatnonzero(owner == t)
        owner[alone[most:]] = -1
        load[t] = min(most, len(alone))
    several = numpy.flatnonzero(options > 1)
    for orbit in several[numpy.argsort(options[several], kind="stable")]:
        t = min(reach[:, orbit].nonzero()[0].tolist(), key=load.__getitem__)
        if load[t] < most:
            owner[orbit] = t
            load[t] += 1
    # one of the others makes room by moving on
    for orbit in numpy.flatnonzero(owner < 0).tolist():
        for t, u in product(reach[:, orbit].nonzero()[0].tolist(), range(len(parts))):
            movable = numpy.flatnonzero((owner == t) & reach[u]) if load[u] < most else owner[:0]
            if len(movable):
                owner[movable[0]], owner[orbit] = u, t
                load[u] += 1
                break
    return owner
