"""The layers of Clenshaw's rule: t, then T_r from its halves, then b_{J−1}, …, b_1, p, each as soon as it can be read.

b_j + b_{j+2} = q_j + 2y b_{j+1} is *added* to the place of b_{j+2}, with a sign that turns at every visit: two places
hold all b_j and none is ever cleared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sumformer.gadgets.clenshaw import Rule, Step, halves
from sumformer.gadgets.identity import identity
from sumformer.gadgets.product import product
from sumformer.gadgets.reading import Reading
from sumformer.gadgets.saw import Prefer
from sumformer.gadgets.square import branch
from sumformer.gadgets.units import Gadget, Size, Units


@dataclass(frozen=True, eq=False)
class Schedule:
    """First layer of every step by (j, r), the layer of what is linear in b_j, layers in all."""

    rule: Rule
    steps: tuple[Step, ...]
    start: Mapping[tuple[int, int], int]
    linear: Mapping[int, int]
    layers: int

    def size(self) -> Size:
        """Layers, widest layer, non-zero weights; these up to a few biases."""
        units = [0] * self.layers
        units[0], nonzero = 1, 3
        for s in self.steps:
            branches = 1 if s.is_square or not s.shape.layers else 2
            M = s.shape.pieces if s.shape.layers else 1
            for k in range(s.layers):
                units[self.start[s.j, s.r] + k] += branches * (M + (k == s.layers - 1 and s.layers > 1))
            reads = 1 if s.is_square else self.rule.reads(s.j) if s.j >= 0 else 2
            zeros = s.layers - (M % 2)  # biases of the knots 0, and of 1/2 in the first layer
            nonzero += branches * (s.shape.nonzero(reads) - zeros if s.shape.layers else reads + 2)
            if s.j < 0 and not s.is_square:  # − t
                units[self.start[s.j, s.r]] += 1
                nonzero += 3
        for j, layer in self.linear.items():
            units[layer] += 1
            nonzero += len(self.rule.linear(j)[0]) + 2 + (j == 0 and self.rule.f.J > 2)
        return Size(self.layers, max(units), nonzero)


def schedule(rule: Rule, steps: tuple[Step, ...], serial: bool) -> Schedule:
    """Each step at once when what it reads is there, or one after another."""
    ready: dict[int, int] = {1: 1}
    start: dict[tuple[int, int], int] = {}
    linear: dict[int, int] = {}
    cursor, b_ready, f = 1, 1, rule.f
    for s in steps:
        if s.j < 0:
            at = max(ready[h] for h in halves(s.r))
            at = max(at, cursor) if serial else at
            cursor = ready[s.r] = at + s.layers
        else:
            top = [ready[r] for r, w in enumerate(f.d[-1]) if w and r] if s.j == f.J - 1 else []
            at = max(ready[f.m], b_ready, *top, cursor if serial else 1)
            b_ready, linear[s.j] = _linear(rule, s.j, at, at + s.layers, ready)
        start[s.j, s.r] = at
    if not f.J:
        b_ready, linear[0] = _linear(rule, 0, 1, 1, ready)
    return Schedule(rule, steps, start, {j: k for j, k in linear.items() if k >= 0}, b_ready)


def _linear(rule: Rule, j: int, start: int, end: int, ready: Mapping[int, int]) -> tuple[int, int]:
    """When b_j is there, and the layer of its linear part: −1 where that is a constant, for the product to add."""
    parts, _ = rule.linear(j)
    if not parts and not (j == 0 and rule.f.J > 2) and rule.f.J:
        return end, -1
    layer = max([start, *(ready[r] for r in parts)])
    return max(end, layer + 1), layer


@dataclass(frozen=True, eq=False)
class Placed:
    """A step as it stands in the stages: the place it writes, the error of its saws, its workspace."""

    step: Step
    place: str
    first: int
    last: int
    error: float
    workspace: tuple[str, ...]


class Stages:
    """All units, and where every step stands."""

    def __init__(self, s: Schedule, argument: Units, place: str, prefer: Prefer) -> None:
        self.s, self.place, self.prefer = s, place, prefer
        self.stages: list[list[Units]] = [[] for _ in range(s.layers)]
        self.stages[0].append(argument)
        self.placed: list[Placed] = []
        self.bounds = s.rule.bounds({(x.j, x.r): x.own for x in s.steps})
        for step in s.steps:
            self._square(step) if step.is_square else self._product(step)
        if not s.rule.f.J:
            self._linear(0)

    def T(self, r: int) -> str:
        return f"{self.place}.t" if r == 1 else f"{self.place}.T{r}"

    def b(self, j: int) -> tuple[str, float]:
        """The place of b_j and its sign there."""
        return f"{self.place}.b{j % 2}", 1.0 if (self.s.rule.f.J - 1 - j) % 4 < 2 else -1.0

    @property
    def workspace(self) -> tuple[str, ...]:
        names = {name: None for stage in self.stages for units in stage for name in units.writes}
        return tuple(name for name in names if name != self.place)

    def _put(self, step: Step, gadget: Gadget, place: str) -> None:
        first = self.s.start[step.j, step.r]
        for k, stage in enumerate(gadget.stages):
            self.stages[first + k].extend(stage)
        last = max(first + step.layers, self.s.linear.get(step.j, 0) + 1)
        self.placed.append(Placed(step, place, first, last, gadget.error, gadget.workspace))

    def _square(self, s: Step) -> None:
        """2T² − 1 = 4AB (P² − P) + AB − 1, P = T/2B + 1/2, A = 2B; the one-sided error is halved."""
        place, area = self.T(s.r), s.A * s.B
        error = 2 * area * s.shape.error
        P, workspace = Reading({self.T(s.r // 2): 0.5 / s.B}, 0.5), f"{place}+"
        groups = branch(P, (4 * area, -4 * area, area - 1 - error), s.shape, place, workspace)
        names = (workspace,) if s.shape.layers > 1 else ()
        self._put(s, Gadget("square", tuple((g,) for g in groups), error * (1 + 2.0**-40), names), place)

    def _product(self, s: Step) -> None:
        f, j = self.s.rule.f, s.j
        if j < 0:
            low, high = halves(s.r)
            place, a, b = self.T(s.r), {self.T(low): 2.0}, Reading({self.T(high): 1.0})
            (unit,) = identity(Reading({self.T(1): 1.0}, lo=-1 - 2 * self.s.rule.e_t), {place: -1.0}).stages[0]
            self.stages[self.s.start[j, s.r]].append(unit)
        else:
            place, sign = self.b(j) if j else (self.place, 1.0)
            a = {self.T(f.m): sign * (2.0 if j else 1.0)}
            b = Reading({self.T(r): w for r, w in enumerate(f.d[-1]) if r and w}, f.d[-1][0])
            if j + 1 < f.J:
                name, turned = self.b(j + 1)
                b = Reading({name: turned})
        b = b.within(s.centre - s.B, s.centre + s.B)
        self._put(s, product(Reading(a, 0.0, -s.A, s.A), b, place, s.tolerance, self.prefer), place)
        if j >= 0:
            self._linear(j)

    def _linear(self, j: int) -> None:
        rule = self.s.rule
        parts, constant = rule.linear(j)
        place, sign = self.b(j) if j else (self.place, 1.0)
        reads = {self.T(r): w for r, w in parts.items()}
        size = sum(abs(w) * (1 + rule.beyond + self.bounds.T.get(r, rule.e_t)) for r, w in parts.items())
        if j == 0 and rule.f.J > 2:
            name, turned = self.b(2)
            reads[name] = -turned
            size += abs(rule.f.d[2][0]) + self.bounds.b[2]
        if j in self.s.linear:
            lowest = constant - size * (1 + 2.0**-20)
            reads = reads or {self.T(1): 0.0}  # a constant alone
            (unit,) = identity(Reading(reads, constant, lowest), {place: sign}).stages[0]
            self.stages[self.s.linear[j]].append(unit)
            return
        stage = self.stages[self.s.start[j, 0]]
        if not stage:  # a step without units: the constant needs one to stand by
            stage.extend(identity(Reading({self.T(1): 1.0}, lo=-2.0), {place: 0.0}).stages[0])
        stage[-1] = stage[-1].plus(place, sign * constant)
