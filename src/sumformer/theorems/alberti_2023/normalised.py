"""Σ_j b K g / Σ_j b K with b, K > 0, bounded as a whole: numerator and denominator share K̃, so their errors are tied.

With weights w_j = b K > 0 and K̃ = K(1 + δ_j), |δ_j| ≤ η:
  S − f = Σ w_j δ_j (g_j − f) / Σ w_j (1 + δ_j),   |S − f| ≤ η/(1−η) · diam_y(g)/2,
because f is the w-mean of g and a mean absolute deviation is at most half the diameter. Rounding is counted relative to
the denominator, which is at least |a| · mean(b) · K_min (1 − η).
Where the own token is among those summed, Σ b K ≥ κ Σ b with κ of `own_token.py`, and with e = sup |K̃ − K|
  |S − f| ≤ Σ b e |g_j − f| / Σ b K̃ ≤ e/(κ − e) · diam_y(g),   Σ b K̃ ≥ (κ − e) Σ b:
for a kernel that falls to nearly 0 far away, κ is of the order of 1/n where K_min is not worth dividing by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sumformer.algebra.interval import Interval
from sumformer.algebra.rounding import FloatArray
from sumformer.algebra.tracked import INFLATE, Tracked
from sumformer.targets import Binary, Reduce
from sumformer.theorems.alberti_2023.decomposition import ReducedSum, Term
from sumformer.theorems.alberti_2023.expansion import Expander
from sumformer.theorems.alberti_2023.own_token import least_share
from sumformer.theorems.alberti_2023.term_sizes import TermSizes


@dataclass(frozen=True)
class _Channel:
    """b > 0: its relative error, its least and its largest value."""

    error: float
    least: float
    largest: float


@dataclass(frozen=True)
class _Denominator:
    """a(x) · c · mean b K: its term, the least |a|, c mean(b)/that at most, |S − f|/diam(g), its relative rounding."""

    term: Term
    least_own: FloatArray
    share: float
    deviation: float
    channel: _Channel
    rounding: FloatArray

    @property
    def constant(self) -> Fraction:
        return self.term.polynomial[0][1]


@dataclass(frozen=True)
class Quotients:
    """Recognises normalised kernels among the quotients of a target and bounds them.

    `own_among` is the largest number of tokens, where the own one is known to be among them.
    """

    sums: Mapping[Reduce, ReducedSum]
    sizes: TermSizes
    expander: Expander
    own_among: int | None = None

    def bound(self, node: Binary) -> Tracked | None:
        """num/den over one shared kernel; None when the pattern does not fit, and the general rule applies."""
        if not (isinstance(node.left, Reduce) and isinstance(node.right, Reduce)):
            return None
        if node.right.width != 1 or node.left.kind != node.right.kind:
            return None
        tops, bottom = self.sums[node.left].components, self.sums[node.right].components[0]
        if len(bottom) != 1 or any(index != (0,) * self.expander.box.d for index, _ in bottom[0].polynomial):
            return None
        base = bottom[0]
        if any((t.channel, t.kernels) != (base.channel, base.kernels) for terms in tops for t in terms):
            return None
        denominator = self._denominator(base, node.left.kind.endswith("others"))
        if denominator is None:
            return None
        if any(self._overflows(terms, node.left.kind) for terms in (*tops, bottom)):
            return None  # as the reductions are then bounded one by one: by ∞
        columns = [self._component(terms, denominator) for terms in tops]
        found = [c for c in columns if c is not None]
        return self.sizes.ops.cat(found) if len(found) == len(columns) else None

    def _denominator(self, base: Term, others: bool) -> _Denominator | None:
        b, own = self.sizes.channel(base.channel), self.sizes.own(base.own_node)
        lowest, largest = float(b.range.lo.min()), float(b.magnitude.max())
        storable = self.sizes.ops.tiny <= abs(base.polynomial[0][1]) <= self.sizes.ops.huge
        if lowest <= 0 or not storable or bool(np.any(own.range.contains(0.0))):
            return None
        found = self._least_mean(base, largest, None if others else self.own_among)
        if found is None:
            return None
        least, deviation = found
        # Leaving out the own token: the rest holds ≥ b_min/(b_min + b_max) of Σ b, and two sums are rounded, not one.
        spread = 2.0 * (lowest + largest) / lowest if others else 1.0
        share = spread / (least * float(abs(base.polynomial[0][1]))) * INFLATE
        least_own = np.where(own.range.lo > 0, own.range.lo, -own.range.hi)
        error = float((b.error[:, 0] / b.range.lo[:, 0]).max()) * INFLATE
        channel = _Channel(error, lowest, largest)
        rounding = self._term_error(base, Interval(1.0, 1.0), own, least_own, channel, 1) * share
        if not bool(np.all(rounding < 0.5)):
            return None
        return _Denominator(base, least_own, share, deviation, channel, rounding)

    def _overflows(self, terms: tuple[Term, ...], kind: str) -> bool:
        """Σ_t a_t V_t, times n for a sum, may leave the range of the arithmetic; twice for …_others."""
        moved = 0.0
        for term in terms:
            own, b = self.sizes.own(term.own_node), self.sizes.channel(term.channel)
            largest = float(b.magnitude.max())
            value, rounded = self.sizes.of(term, float(b.error.max()) / max(largest, 1e-300), largest, largest)
            moved += float((own.magnitude + own.error).max()) * largest * (value + rounded)
        count = 1 if kind == "mean" else self.sizes.roundings.n_max
        return not moved <= self.sizes.ops.huge / (16 * count)

    def _least_mean(self, base: Term, largest: float, own_among: int | None) -> tuple[float, float] | None:
        """A lower bound of mean(b K̃)/mean(b), and |S − f|/diam(g): by K_min or by the own token."""
        kernels, found = self.sizes.kernels, []
        least, eta = kernels.minimum(base), kernels.relative(base)
        if least > 0 and eta < 0.5:
            found.append((least * (1 - eta) / INFLATE, eta / (1 - eta) / 2))
        if own_among is not None and kernels.nonnegative(base):
            kappa = least_share(base.kernels, base.channel, least, largest, self.sizes.cells, own_among)
            error = kernels.absolute(base)
            if error < 0.5 * kappa:
                found.append(((kappa - error) / INFLATE, error / (kappa - error) * INFLATE))
            if least > 0 and eta < 0.5:
                found.append((kappa * (1 - eta) / INFLATE, eta / (1 - eta) / 2))
        return (max(f[0] for f in found), min(f[1] for f in found)) if found else None

    def _component(self, terms: tuple[Term, ...], den: _Denominator) -> Tracked | None:
        """One coordinate: g over all y, the deviation bound, and both roundings relative to the denominator."""
        cells = self.sizes.cells
        shape = (cells.x.shape[0], cells.y.shape[0])
        g, num = Interval(np.zeros(shape), np.zeros(shape)), np.zeros((shape[0], 1))
        for term in terms:
            ratio = self._own_ratio(term, den.term).range
            g = g + ratio * cells.polynomial(term.polynomial) * Interval.from_fraction(1 / den.constant)
            own = self.sizes.own(term.own_node)
            num += self._term_error(term, ratio, own, den.least_own, den.channel, len(terms)) * den.share
        if not bool(np.all(np.isfinite(num))):
            return None
        value = Interval(g.lo.min(axis=1, keepdims=True), g.hi.max(axis=1, keepdims=True))
        approximation = den.deviation * (value.hi - value.lo) * INFLATE
        size = value.abs_upper() + approximation
        rounding = (num + size * den.rounding) / (1 - den.rounding) * INFLATE
        rounding += 2 * self.sizes.ops.u * (size + rounding)
        return Tracked(value, (approximation + rounding) * INFLATE)

    def _own_ratio(self, term: Term, base: Term) -> Tracked:
        """a_t / a, factors cancelled exactly."""
        powers = dict(term.own)
        for atom, e in base.own:
            powers[atom] = powers.get(atom, 0) - e
        monomial = frozenset((atom, e) for atom, e in powers.items() if e)
        return self.sizes.own(self.expander.node({monomial: Fraction(1)}))

    def _term_error(
        self, term: Term, ratio: Interval, own: Tracked, least_own: FloatArray, channel: _Channel, terms: int
    ) -> FloatArray:
        """|computed − exact| of a_t V_t in a sum of `terms`, relative to |a| · mean b, a the denominator's factor."""
        value, rounded = self.sizes.of(term, channel.error, channel.least, channel.largest)
        if not np.isfinite(rounded) or not np.isfinite(own.error).all():
            return np.full(own.error.shape, np.inf)
        moved = rounded + 1.01 * (terms + 6) * self.sizes.ops.u * (value + rounded)
        found = ratio.abs_upper() * moved + own.error / least_own * (value + rounded + moved)
        if self.sizes.ops.u:
            found = found + 8 * self.sizes.ops.tiny / (least_own * channel.least)  # a_t V_t may underflow
        return np.asarray(found * INFLATE)
