"""sup Σ_{j≠i,c} r_c |∂f_i/∂x_{j,c}| over all tokens of the box: how far f_i moves when every other token moves by r.

With `own` the own token moves as well: its variables are the last ones.

Each token, or the group of all the others where they are many, lies in a slot: a cell of its own that stands for
`count` tokens. Inside a reduction's body e(x, y) the token y has variables of its own, which then go to its slot:
  ∂(Σ_t c_t e_t)/∂(a token of slot s) = ∂e_s/∂y + Σ_t c_t ∂e_t/∂s.
Weighted means Σ w a/Σ w have a rule of their own (`weighted_mean.py`) beside the quotient rule.
Cells above the goal are halved until none is left.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sumformer.certificates.checker.grid.slope import Slope, SlopeOperations
from sumformer.certificates.checker.grid.weighted_mean import sharpened, weighted_mean
from sumformer.certificates.checker.interval import Floats, Interval, IntervalOperations, from_fraction
from sumformer.certificates.checker.token_values import body_value
from sumformer.certificates.checker.tree_values import components
from sumformer.targets.domain import Box
from sumformer.targets.node import Node
from sumformer.targets.tree import Reduce, Token
from sumformer.targets.walk import postorder, reductions

LISTED = 12  # up to so many tokens, each has a slot of its own
BUDGET = 60_000  # cells
CHUNK = 4_000
_REAL = IntervalOperations()
_ONE = from_fraction(Fraction(1))


class Modulus:
    """For exactly n tokens and the radii r, (d,)."""

    def __init__(self, expression: Node, box: Box, n: int, radii: Floats, own: bool = False) -> None:
        self.expression, self.box, self.d, self.n, self.radii = expression, box, box.d, n, radii
        self.listed = n <= LISTED
        self.own, self.counts = own, [1] * (n - 1) if self.listed else [n - 1]
        self.weights = np.concatenate([radii, *(count * radii for count in self.counts), *([radii] if own else [])])
        found = {part: weighted_mean(part) for part in postorder(expression, into_reductions=False)}
        self.means = {part: mean for part, mean in found.items() if mean is not None}

    def bound(self, goal: float) -> float:
        """≥ the supremum, ≤ goal where that can be shown within the budget."""
        if self.n == 1 and not self.own:
            return 0.0
        slots = len(self.counts) + 1
        ends = [(from_fraction(a), from_fraction(b)) for a, b in zip(self.box.lower, self.box.upper, strict=True)]
        low, high = (
            np.array([side * slots]) for side in ([float(a.lo) for a, _ in ends], [float(b.hi) for _, b in ends])
        )
        sides, settled, spent = high - low, 0.0, 0
        while len(low):
            bounds = np.concatenate(
                [self.lengths(low[i : i + CHUNK], high[i : i + CHUNK]) for i in range(0, len(low), CHUNK)]
            )
            spent += len(low)
            over = ~(bounds <= goal)
            settled = max(settled, float(bounds[~over].max(initial=0.0)))
            if spent + 2 * int(over.sum()) > BUDGET or (not self.listed and self._narrow(low[over], high[over], sides)):
                return max(settled, float(bounds.max()))
            low, high = low[over], high[over]
            if len(low):
                low, high = self._halves(low, high, sides)
        return settled

    def _narrow(self, low: Floats, high: Floats, sides: Floats) -> bool:
        """The own token's cells cannot be halved further with profit."""
        return bool(len(low)) and float(((high - low) / sides)[:, : self.d].max()) < 2.0**-12

    def _halves(self, low: Floats, high: Floats, sides: Floats) -> tuple[Floats, Floats]:
        """Across the widest side; the slots of single tokens in one order, equal cells once. A group is not halved."""
        rows, relative = np.arange(len(low)), (high - low) / sides
        if not self.listed:
            relative[:, self.d :] = 0.0
        side = relative.argmax(axis=1)
        middle = low[rows, side] / 2 + high[rows, side] / 2
        first_high, second_low = high.copy(), low.copy()
        first_high[rows, side], second_low[rows, side] = middle, middle
        low, high = np.concatenate([low, second_low]), np.concatenate([first_high, high])
        if not self.listed or len(self.counts) < 2:
            return low, high
        d, others = self.d, len(self.counts)
        cells = np.concatenate([v[:, d:].reshape(-1, others, d) for v in (low, high)], axis=2)
        for k in reversed(range(2 * d)):
            order = np.argsort(cells[:, :, k], axis=1, kind="stable")
            cells = np.take_along_axis(cells, order[:, :, None], axis=1)
        low[:, d:], high[:, d:] = (cells[:, :, part].reshape(len(low), -1) for part in (slice(0, d), slice(d, None)))
        both = np.unique(np.concatenate([low, high], axis=1), axis=0)
        return both[:, : low.shape[1]].copy(), both[:, low.shape[1] :].copy()

    def lengths(self, low: Floats, high: Floats) -> Floats:
        """The bound on each cell, the largest over f's components; ∞ where a slope may not exist."""
        ops, d = SlopeOperations(len(low), self.weights), self.d
        tokens = [
            [Interval(low[:, t * d + c], high[:, t * d + c]) for c in range(d)] for t in range(len(self.counts) + 1)
        ]
        units = np.eye(len(self.weights))[:d]
        own = self._own(ops, tokens[0])
        slots = [
            [Slope(v, Interval(unit, unit), np.asarray(r)) for v, unit, r in zip(token, units, self.radii, strict=True)]
            for token in tokens[1:]
        ]
        known: dict[Reduce, list[Slope]] = {}
        for part in reductions(self.expression):
            mine = None if part.kind.endswith("_others") else body_value(part, ops, own, own, known)
            theirs = [body_value(part, ops, own, y, known) for y in slots]
            known[part] = [
                self._reduced(part, ops, None if mine is None else mine[k], [e[k] for e in theirs], len(low))
                for k in range(part.width)
            ]

        def leaf(part: Node) -> list[Slope] | None:
            if isinstance(part, Token):
                return own
            if part in self.means:
                mean = self.means[part]
                top, bottom = (known[r] * (mean.width // r.width) for r in (mean.top, mean.bottom))
                plain = [ops.div(a, b) for a, b in zip(top, bottom, strict=True)]
                slotted = list(zip(self.counts, slots, strict=True))
                return sharpened(mean, plain, ops, own, slotted, known, self._to_slots)
            return known[part] if isinstance(part, Reduce) else None

        worst = np.zeros(len(low))
        for value in components(self.expression, ops, leaf):
            exists = np.isfinite(value.value.magnitude)
            worst = np.maximum(worst, np.where(exists, value.length, np.inf))
        return np.where(ops.bad | np.isnan(worst), np.inf, worst)

    def _own(self, ops: SlopeOperations, token: list[Interval]) -> list[Slope]:
        if not self.own:
            return [ops.fixed(v) for v in token]
        units = np.eye(len(self.weights))[-self.d :]
        return [Slope(v, Interval(e, e), np.asarray(r)) for v, e, r in zip(token, units, self.radii, strict=True)]

    def _reduced(
        self, part: Reduce, ops: SlopeOperations, mine: Slope | None, theirs: list[Slope], cells: int
    ) -> Slope:
        if part.kind in ("max", "min"):
            return self._extreme(part.kind, ops, mine, theirs, cells)
        share = _REAL.div(_ONE, _count(self.n - (mine is None)))
        scale = share if part.kind.startswith("mean") else _ONE
        start = mine if mine is not None else ops.const(Fraction(0))
        value, gradient, length = start.value, start.gradient, start.length
        for count, e in zip(self.counts, theirs, strict=True):
            value = _REAL.add(value, _REAL.mul(_count(count), e.value))
            gradient = _REAL.add(gradient, _REAL.mul(_count(count), e.gradient))
            length = length + count * e.length
        gradient = self._to_slots(gradient, [e.gradient for e in theirs], cells)
        value, gradient = _REAL.mul(scale, value), _REAL.mul(scale, gradient)
        return ops.made(value, gradient, length * scale.hi * (1 + 2.0**-40))

    def _extreme(self, kind: str, ops: SlopeOperations, mine: Slope | None, theirs: list[Slope], cells: int) -> Slope:
        """Any mixture of those that may attain it; one single token alone is the extremum itself."""
        everyone = ([] if mine is None else [mine]) + theirs
        values = [e.value if kind == "max" else _REAL.neg(e.value) for e in everyone]
        lo, hi = (np.stack([np.broadcast_to(getattr(v, end), (cells,)) for v in values]) for end in ("lo", "hi"))
        best = lo.max(axis=0)
        active = hi >= best
        shape = (len(everyone), cells, len(self.weights))
        low, high = np.empty(shape), np.empty(shape)
        for i, e in enumerate(everyone):
            low[i] = np.where(active[i][:, None], e.gradient.lo, np.inf)
            high[i] = np.where(active[i][:, None], e.gradient.hi, -np.inf)
        gradient = Interval(low.min(axis=0), high.max(axis=0))
        alone = active.sum(axis=0) == 1
        parts = []
        for count, e, on in zip(self.counts, theirs, active[len(everyone) - len(theirs) :], strict=True):
            sure, maybe = (on & alone & (count == 1))[:, None], on[:, None]
            parts.append(
                Interval(
                    np.where(sure, e.gradient.lo, np.where(maybe, np.minimum(e.gradient.lo, 0), 0.0)),
                    np.where(sure, e.gradient.hi, np.where(maybe, np.maximum(e.gradient.hi, 0), 0.0)),
                )
            )
        gradient = self._to_slots(gradient, parts, cells)
        lengths = np.stack([np.broadcast_to(e.length, (cells,)) for e in everyone])
        top = Interval(best, hi.max(axis=0))
        length = np.where(active, lengths, 0.0).max(axis=0)
        return ops.made(top if kind == "max" else _REAL.neg(top), gradient, length)

    def _to_slots(self, gradient: Interval, by_token: list[Interval], cells: int) -> Interval:
        """y's own variables, the first d, are added to its slot's."""
        d, columns = self.d, len(self.weights)
        lo, hi = (np.broadcast_to(end, (cells, columns)).copy() for end in (gradient.lo, gradient.hi))
        lo[:, :d], hi[:, :d] = 0.0, 0.0
        for t, part in enumerate(by_token):
            where = slice((t + 1) * d, (t + 2) * d)
            ends = [np.broadcast_to(end, (cells, columns))[:, :d] for end in (part.lo, part.hi)]
            moved = _REAL.add(Interval(lo[:, where], hi[:, where]), Interval(*ends))
            still = (ends[0] == 0) & (ends[1] == 0)
            lo[:, where] = np.where(still, lo[:, where], moved.lo)
            hi[:, where] = np.where(still, hi[:, where], moved.hi)
        return Interval(lo, hi)


def _count(k: int) -> Interval:
    return from_fraction(Fraction(k))
