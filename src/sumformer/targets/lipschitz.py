"""L = sup_X Σ_{t,k} ω_k |∂f(X)_1/∂x_{t,k}|, certified: |f(X) − f(X')|_∞ ≤ L when |x_{t,k} − x'_{t,k}| ≤ ω_k.

The sum runs over the other tokens, over one of them, or over all, the own one included. Interval slopes over boxes of
multisets, bisected until the bound is within `factor` of what the gradient attains somewhere, or the budget is spent:
every bound on the way is a proof, so a spent budget costs tightness, never truth.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sumformer.algebra.interval import Interval
from sumformer.algebra.rounding import FloatArray, fraction_bounds
from sumformer.errors import InputError, RefusedError
from sumformer.targets.domain import Tokens
from sumformer.targets.target import Target
from sumformer.targets.token_slopes import TokenSlopes

Variables = Literal["others", "token", "all"]
LISTED = 12  # up to so many tokens, each has a box of its own; beyond, all others share one
COUNTS = 64
BOXES = 2**14
ROUND = 512  # boxes bisected at a time, the worst ones


@dataclass(frozen=True)
class LipschitzBound:
    """`value` ≥ L, enclosed; `attained` ≤ L, by the gradient at some X; `boxes` evaluated."""

    value: float
    attained: float
    boxes: int
    kind: Literal["enclosed"] = "enclosed"


def lipschitz_bound(
    f: Target,
    n: int | Tokens | None = None,
    *,
    wrt: Variables = "others",
    weights: Sequence[float] | None = None,
    factor: float = 1.15,
    boxes: int = BOXES,
    budget_seconds: float = float("inf"),
) -> LipschitzBound:
    """The Lipschitz constant of f in the sup norms, for n tokens (by default all the numbers f allows).

    `weights` ω: how far each of the d coordinates moves (default 1). A `RefusedError` where no slope bound exists.
    """
    tokens = f.tokens if n is None else Tokens(n, n) if isinstance(n, int) else n
    omega = np.ones(f.d) if weights is None else np.asarray(weights, dtype=np.float64)
    if omega.shape != (f.d,) or not bool((omega >= 0).all() and np.isfinite(omega).all()):
        raise InputError(f"lipschitz_bound: expected {f.d} finite weights ≥ 0, got {weights}")
    if tokens.minimum < f.least_tokens:
        raise InputError(f"lipschitz_bound: expected n ≥ {f.least_tokens}, got {tokens}")
    if tokens.maximum - tokens.minimum >= COUNTS:
        reason = f"up to {COUNTS} different n are looked at one by one, got {tokens.formula()}: give n, as --tokens 8"
        raise RefusedError("no Lipschitz constant was sought", [reason])
    numbers = range(tokens.minimum, tokens.maximum + 1)
    parts = [_bound(f, k, wrt, omega, factor, boxes // len(numbers), budget_seconds / len(numbers)) for k in numbers]
    largest = [max(getattr(p, name) for p in parts) for name in ("value", "attained")]
    return LipschitzBound(largest[0], largest[1], sum(p.boxes for p in parts))


def _bound(
    f: Target, n: int, wrt: Variables, omega: FloatArray, factor: float, boxes: int, seconds: float
) -> LipschitzBound:
    if n == 1 and wrt != "all":
        return LipschitzBound(0.0, 0.0, 0)
    return _Search(f, n, wrt, omega).run(factor, boxes, seconds)


class _Search:
    """Branch and bound over the boxes of (x_1, …, x_T)."""

    def __init__(self, f: Target, n: int, wrt: Variables, omega: FloatArray) -> None:
        self.f, self.omega = f, omega
        singled = 1 if wrt == "token" else 0
        self.listed = n <= LISTED
        counts = [1] * n if self.listed else [1] * (1 + singled) + [n - 1 - singled]
        self.counts = [Interval.point(float(c)) for c in counts]
        self.moving = [wrt == "all" or (t == 1 if singled else t > 0) for t in range(len(counts))]
        self.alike = 1 + singled  # the tokens from here on may be exchanged
        self.reasons: dict[str, None] = {}
        self.evaluated = 0

    def run(self, factor: float, boxes: int, budget: float) -> LipschitzBound:
        start = time.perf_counter()
        box = self.f.box
        ends = [(fraction_bounds(a)[0], fraction_bounds(b)[1]) for a, b in zip(box.lower, box.upper, strict=True)]
        lo = np.tile(np.array([[a for a, _ in ends]]), (1, len(self.counts), 1))
        hi = np.tile(np.array([[b for _, b in ends]]), (1, len(self.counts), 1))
        sides = hi[:, :1] - lo[:, :1]
        upper, attained = self.look(lo, hi)
        settled = 0.0
        while self.evaluated < boxes and time.perf_counter() - start < budget:
            done = upper <= factor * attained
            settled = max(settled, float(upper[done].max(initial=0.0)))
            lo, hi, upper = lo[~done], hi[~done], upper[~done]
            if not len(upper) or self.is_stuck(lo, hi, upper, sides):
                break
            order = np.argsort(-upper, kind="stable")
            worst, rest = order[:ROUND], order[ROUND:]
            a, b = self.bisect(lo[worst], hi[worst], sides)
            self.reasons.clear()
            new, seen = self.look(a, b)
            attained = max(attained, seen)
            lo, hi = np.concatenate([lo[rest], a]), np.concatenate([hi[rest], b])
            upper = np.concatenate([upper[rest], new])
        value = max(settled, float(upper.max(initial=0.0)))
        if not np.isfinite(value):
            raise RefusedError("no Lipschitz constant could be certified on this box", list(self.reasons))
        return LipschitzBound(value, attained, self.evaluated)

    def is_stuck(self, lo: FloatArray, hi: FloatArray, upper: FloatArray, sides: FloatArray) -> bool:
        """Some box is as good as a point, and still without a bound."""
        points = ((hi - lo) / sides).reshape(len(lo), -1).max(1) < 2.0**-40
        return bool((points & ~np.isfinite(upper)).any())

    def look(self, lo: FloatArray, hi: FloatArray) -> tuple[FloatArray, float]:
        """The bound on every box, and the largest length of the gradient at the boxes' midpoints, from below."""
        self.evaluated += len(lo)
        upper = self.slopes(lo, hi)[0]
        middle = 0.5 * lo + 0.5 * hi
        return upper, float(self.slopes(middle, middle)[1].max())

    def slopes(self, lo: FloatArray, hi: FloatArray) -> tuple[FloatArray, FloatArray]:
        tokens = TokenSlopes(Interval(lo, hi), self.counts, self.moving, self.omega)
        slope = tokens.of(self.f.expression)
        self.reasons.update(tokens.reasons)
        shape = (len(lo), self.f.width)
        gradient = slope.gradient.broadcast_to((*shape, slope.gradient.shape[-1]))
        least = np.maximum(np.maximum(gradient.lo, -gradient.hi), 0.0)
        with np.errstate(over="ignore"):
            below = (least * self.below).sum(-1) * (1 - 2.0**-40)
        return np.broadcast_to(slope.length, shape).max(-1), below.max(-1)

    @property
    def below(self) -> FloatArray:
        """ω_k times how often each moving token counts at least."""
        often = [float(c.lo) for c, moves in zip(self.counts, self.moving, strict=True) if moves]
        return np.repeat(often, self.f.d) * np.tile(self.omega, len(often))

    def bisect(self, lo: FloatArray, hi: FloatArray, sides: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Halve the widest coordinate; exchangeable tokens in a fixed order, equal boxes once."""
        relative = (hi - lo) / sides
        if not self.listed:
            relative[:, self.alike :] = 0.0  # tokens that share a box need not lie in the same half of it
        widest = relative.reshape(len(lo), -1).argmax(1)
        t, k = np.divmod(widest, self.f.d)
        row = np.arange(len(lo))
        middle = 0.5 * lo[row, t, k] + 0.5 * hi[row, t, k]
        left_hi, right_lo = hi.copy(), lo.copy()
        left_hi[row, t, k], right_lo[row, t, k] = middle, middle
        pairs = np.concatenate([np.concatenate([lo, right_lo]), np.concatenate([left_hi, hi])], axis=-1)
        if self.listed:
            pairs = np.unique(_sorted(pairs, self.alike), axis=0)
        return pairs[..., : self.f.d].copy(), pairs[..., self.f.d :].copy()


def _sorted(boxes: FloatArray, first: int) -> FloatArray:
    """Each row's tokens from `first` on in lexicographic order."""
    out = boxes.copy()
    for k in reversed(range(boxes.shape[-1])):
        order = np.argsort(out[:, first:, k], axis=1, kind="stable")
        out[:, first:] = np.take_along_axis(out[:, first:], order[..., None], axis=1)
    return out
