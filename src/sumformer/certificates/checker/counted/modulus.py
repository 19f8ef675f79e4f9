"""sup over cells of |d/dt f| on the way of all that reductions see, x' = x and the tokens y_j, to the centres.

Where the derivative exists, almost everywhere, and with |dx'_c|, |dy_c| ≤ r_c, for each reduction R
  dR = Σ_j p_j (∂_x' e(x', y_j) dx' + Σ_Q ∂_Q e(x', y_j) dQ + ∂_y e(x', y_j) dy_j),   p_j ≥ 0, Σ_j p_j = 1,
of its body e and the reductions Q inside it (p_j = 1/n in a mean, and n times that in a sum; in a maximum p_j = 1 for a
token that attains it). What its own tokens contribute is a number of which nothing is known but its size: ρ_R s_R with
|s_R| ≤ 1 and ρ_R = max_y Σ_c r_c |∂_{y_c} e|. The variables of slopes are x', y inside one body, and the s_R: tokens
move independently, so different reductions do not cancel each other, and one reduction is the same wherever it stands.
Outside the reductions x does not move; x' is within r of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np

from sumformer.certificates.checker.counted.dependence import slots
from sumformer.certificates.checker.counted.mixture import either, mixed, piece, sharpened
from sumformer.certificates.checker.grid.slope import Slope, SlopeOperations, scaled, times
from sumformer.certificates.checker.grid.weighted_mean import weighted_mean
from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, from_fraction
from sumformer.certificates.checker.token_values import leaf_at
from sumformer.certificates.checker.tree_values import Leaf, components
from sumformer.targets.domain import Box, Tokens
from sumformer.targets.homogeneity import cancelled
from sumformer.targets.node import Node
from sumformer.targets.tree import Binary, Reduce, Slice, Token
from sumformer.targets.walk import postorder, rebuild, reductions, transform

OUTER = 64  # pieces of the ranges of reductions around which nothing is summed
HELD = 2**23  # numbers of gradients at a time, of all sub-trees
_REAL = IntervalOperations()
_ONE = from_fraction(Fraction(1))


class Modulus:
    """Bounds on cells of x, and of n where sums are left, with y on a grid of cells."""

    def __init__(self, expression: Node, box: Box, radii: Floats, tokens: Tokens) -> None:
        self.expression, self.box, self.d, self.radii = _rewritten(expression), box, box.d, radii
        self.parts, everything = reductions(self.expression), postorder(self.expression)
        found = {part: weighted_mean(part) for part in everything}
        self.means = {part: mean for part, mean in found.items() if mean is not None}
        self.places: dict[Node, int] = {}
        variables = 2 * self.d
        for part in (*self.parts, *self.means):
            self.places[part] = variables
            variables += part.width
        self.weights = np.concatenate([radii, radii, np.ones(variables - 2 * self.d)])
        self.size = variables * (len(everything) + 2)  # numbers per pair of cells
        self.counted = any(part.kind.startswith("sum") for part in self.parts)
        self.n = (tokens.minimum, tokens.maximum)
        inside = [node for part in self.parts for node in postorder(part.body, into_reductions=False)]
        outside = postorder(self.expression, into_reductions=False)
        self.axes, self.y_axes = _read((*outside, *inside), "x", self.d), _read(inside, "y", self.d)
        inner = bool(_read(inside, "x", self.d))
        self.mixing = inner or self.counted  # whether bodies differ from cell to cell
        self.nested = any(reductions(part.body) for part in self.parts)
        self.slots = {node: self._slots(node) for node in (self.expression, *(part.body for part in self.parts))}
        self.apart = inner and bool(_read(outside, "x", self.d))

    def start(self) -> tuple[Floats, Floats]:
        """The box, and all n, as one cell: (1, d + 1)."""
        low, high = ends(self.box)
        return np.append(low, float(self.n[0]))[None], np.append(high, float(self.n[1]))[None]

    def grid(self, splits: list[int]) -> list[Interval]:
        """y's cells, coordinate by coordinate: (1, cells)."""
        low, high = ends(self.box)
        places = np.indices(splits).reshape(self.d, -1)
        sides = [np.linspace(a, b, k + 1) for a, b, k in zip(low, high, splits, strict=True)]
        return [Interval(side[k][None], side[k + 1][None]) for side, k in zip(sides, places, strict=True)]

    def lengths(self, low: Floats, high: Floats, splits: list[int], pieces: int = 1) -> Floats:
        """The bound on each cell, the largest over f's components; ∞ where a slope may not exist.

        Bodies are bounded on `pieces` of what inner reductions may be.
        """
        at_once = max(1, HELD // (self.size * (int(np.prod(splits)) if self.mixing else 1)))
        y = self.grid(splits)
        rows = [slice(i, i + at_once) for i in range(0, len(low), at_once)]
        return np.concatenate([self._lengths(low[i], high[i], y, pieces) for i in rows])

    def _lengths(self, low: Floats, high: Floats, cells_of_y: list[Interval], pieces: int) -> Floats:
        ops, units = SlopeOperations(1, self.weights), np.eye(len(self.weights))
        x = [Interval(low[:, c, None], high[:, c, None]) for c in range(self.d)]
        near = widened(low[:, : self.d], high[:, : self.d], self.radii, self.box) if self.apart else None
        inner = x if near is None else [Interval(v.lo[:, None], v.hi[:, None]) for v in near]
        n = Interval(low[:, self.d :], high[:, self.d :])
        moving = [
            Slope(v, Interval(unit, unit), np.asarray(r))
            for v, unit, r in zip([*inner, *cells_of_y], units, self.weights, strict=False)
        ]
        own, y = moving[: self.d], moving[self.d :]
        known: dict[Node, list[Slope]] = {}
        for part in self.parts:
            leaf, bodies = self._leaf(ops, own, y, known, own), list[Slope]()
            for some in self._pieces(part.body, leaf, pieces):
                values = components(part.body, ops, some)
                bodies = [either(a, b) for a, b in zip(bodies, values, strict=True)] if bodies else values
            known[part] = self._reduced(part, ops, bodies, n)
        worst = np.zeros((len(low), 1))
        leaf = self._leaf(ops, own, y, known, [ops.fixed(v) for v in x])
        for some in self._pieces(self.expression, leaf, OUTER):
            for value in components(self.expression, ops, some):
                exists = np.isfinite(value.value.magnitude)
                worst = np.maximum(worst, np.where(exists, value.length, np.inf))
        lost = np.broadcast_to(ops.bad, (len(low), ops.bad.shape[-1])).any(axis=1)
        return np.where(lost | np.isnan(worst[:, 0]), np.inf, worst[:, 0])

    def _leaf(
        self, ops: SlopeOperations, own: list[Slope], y: list[Slope], known: dict[Node, list[Slope]], here: list[Slope]
    ) -> Leaf[Slope]:
        """x is `here`; weighted means are made when they are first met, of bodies at `own` and y."""
        plain = leaf_at(here, y, known)

        def leaf(part: Node) -> list[Slope] | None:
            if part in self.means and part not in known:
                mean, place = self.means[part], self.places[part]
                known[part] = sharpened(mean, ops, own, y, known, place)
            return plain(part)

        return leaf

    def _pieces(self, node: Node, leaf: Leaf[Slope], most: int) -> Iterator[Leaf[Slope]]:
        """`leaf` with the values of reductions in `node` from every piece of their ranges, at most so many together.

        Those that no coordinate of `node` depends on at once are cut at once.
        """
        slot = self.slots[node]
        count = 1 + max(slot.values(), default=0)
        each = _each(most, count)
        if each < 2 or not slot:
            yield leaf
            return
        found = {part: leaf(part) for part in dict.fromkeys(part for part, _ in slot)}
        values = {part: value for part, value in found.items() if value is not None}
        for places in product(range(each), repeat=count):
            held = {
                part: [piece(v, places[slot[part, k]], each) if (part, k) in slot else v for k, v in enumerate(value)]
                for part, value in values.items()
            }
            yield lambda part, held=held: held[part] if part in held else leaf(part)  # type: ignore[misc]

    def _slots(self, node: Node) -> dict[tuple[Node, int], int]:
        parts = postorder(node, into_reductions=False, leaves=self.means)
        return slots(node, {part: part.width for part in parts if part in self.means or isinstance(part, Reduce)})

    def more(self, pieces: int, most: int) -> int | None:
        """The next number of pieces, up to `most`, with which a range is cut into twice as many, or as many as go."""
        counts = {1 + max(slot.values()) for part in self.parts if (slot := self.slots[part.body])}
        larger = {min(2 * _each(pieces, count), _each(most, count)) ** count for count in counts}
        return min((number for number in larger if number > pieces), default=None)

    def _reduced(self, part: Reduce, ops: SlopeOperations, bodies: list[Slope], n: Interval) -> list[Slope]:
        values = [mixed(ops, e, self.d, self.places[part] + k) for k, e in enumerate(bodies)]
        if not part.kind.startswith("sum"):
            return values
        often = _REAL.sub(n, _ONE) if part.kind == "sum_others" else n
        return [
            ops.made(_REAL.mul(often, v.value), scaled(often, v.gradient), times(often.hi, v.length)) for v in values
        ]


def ends(box: Box) -> tuple[Floats, Floats]:
    """The box in float64, rounded outward."""
    low, high = ([from_fraction(v) for v in side] for side in (box.lower, box.upper))
    return np.array([float(v.lo) for v in low]), np.array([float(v.hi) for v in high])


def widened(low: Floats, high: Floats, radii: Floats, box: Box) -> list[Interval]:
    """Coordinate by coordinate, the points of the box within r of a cell (cells, d)."""
    first, last = ends(box)
    low = np.maximum(first, np.where(radii > 0, np.nextafter(low - radii, -np.inf), low))
    high = np.minimum(last, np.where(radii > 0, np.nextafter(high + radii, np.inf), high))
    return [Interval(a, b) for a, b in zip(low.T, high.T, strict=True)]


def _each(pieces: int, ranges: int) -> int:
    """Of one range, where so many are cut together."""
    return int(pieces ** (1 / ranges) + 1e-9)


def _rewritten(expression: Node) -> Node:
    """The same with means for sums, where n cancels, and u·(top/bottom) for (u·top)/bottom, a weighted mean."""
    return transform(cancelled(expression), _regrouped)


def _regrouped(part: Node, children: tuple[Node, ...]) -> Node:
    part = rebuild(part, children)
    match part:
        case Binary("/", Binary("*", u, Reduce() as top) | Binary("*", Reduce() as top, u), Reduce() as bottom):
            mean = Binary("/", top, bottom)
            return part if weighted_mean(mean) is None else Binary("*", u, mean)
    return part


def _read(nodes: tuple[Node, ...] | list[Node], name: str, d: int) -> list[int]:
    """The coordinates of the token that are looked at."""
    found: set[int] = set()
    for node in nodes:
        if any(isinstance(child, Token) and child.name == name for child in _operands(node)):
            found |= set(range(node.start, node.stop)) if isinstance(node, Slice) else set(range(d))
    return sorted(found)


def _operands(node: Node) -> tuple[Node, ...]:
    return () if isinstance(node, Reduce) else node.children
