"""Σ_i w_i v_i + b: a number of the stream, read off by one row of weights.

Weights are float64; `slack` bounds what rounding them has changed, |w_i − exact| and |b − exact|: where weights cancel
it is not small against what is left of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import frexp

OFFSET = -1
"""The key of b in `slack`."""
_U = 2.0**-53 * (1 + 2.0**-40)
_TINY = 1e-300  # over what underflows


@dataclass(frozen=True)
class Functional:
    """`terms`: (value, weight), values ascending, weights not 0; `offset` is b."""

    terms: tuple[tuple[int, float], ...] = ()
    offset: float = 0.0
    slack: tuple[tuple[int, float], ...] = field(default=(), compare=False)

    @staticmethod
    def of(weights: Mapping[int, float], offset: float = 0.0, slack: Mapping[int, float] | None = None) -> Functional:
        lost = tuple((v, e) for v, e in slack.items() if e) if slack else ()
        return Functional(tuple(sorted((v, w) for v, w in weights.items() if w)), offset, lost)

    @property
    def single(self) -> int | None:
        """The value this is, if it is just one value."""
        return self.terms[0][0] if len(self.terms) == 1 and self.terms[0][1] == 1 and not self.offset else None

    @property
    def constant(self) -> bool:
        return not self.terms

    def __add__(self, other: Functional) -> Functional:
        return total((self, other))

    def __neg__(self) -> Functional:
        return self.scaled(-1.0)

    def shifted(self, offset: float, error: float = 0.0) -> Functional:
        """b + offset, which is known within `error`."""
        return total((self, Functional((), offset, ((OFFSET, error),) if error else ())))

    def scaled(self, factor: float, error: float = 0.0) -> Functional:
        """Every weight times a factor known within `error`."""
        slack = {v: e * (abs(factor) + error) for v, e in self.slack}
        rounds = abs(frexp(factor)[0]) != 0.5  # no power of two
        for v, w in (*self.terms, (OFFSET, self.offset)):
            if w and (rounds or error):
                slack[v] = slack.get(v, 0.0) + _U * abs(w * factor) + abs(w) * error + _TINY
        scaled = tuple((v, w * factor) for v, w in self.terms if w * factor)
        return Functional(scaled, self.offset * factor, tuple(slack.items()))


def total(parts: Iterable[Functional]) -> Functional:
    """The sum; equal values are collected."""
    weights: dict[int, float] = {}
    slack: dict[int, float] = {}
    for part in parts:
        for v, w in (*part.terms, (OFFSET, part.offset)):
            before = weights.get(v, 0.0)
            weights[v] = before + w
            if before and w:
                slack[v] = slack.get(v, 0.0) + _U * abs(weights[v])
        for v, e in part.slack:
            slack[v] = slack.get(v, 0.0) + e
    offset = weights.pop(OFFSET, 0.0)
    return Functional.of(weights, offset, slack)
