"""Σ_i w_i v_i + b: a number of the stream, read off by one row of weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Functional:
    """`terms`: (value, weight), values ascending, weights not 0; `offset` is b."""

    terms: tuple[tuple[int, float], ...] = ()
    offset: float = 0.0

    @staticmethod
    def of(weights: Mapping[int, float], offset: float = 0.0) -> Functional:
        return Functional(tuple(sorted((v, w) for v, w in weights.items() if w)), offset)

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

    def shifted(self, offset: float) -> Functional:
        return Functional(self.terms, self.offset + offset)

    def scaled(self, factor: float) -> Functional:
        return Functional(tuple((v, w * factor) for v, w in self.terms if w * factor), self.offset * factor)


def total(parts: Iterable[Functional]) -> Functional:
    """The sum; equal values are collected."""
    weights: dict[int, float] = {}
    offset = 0.0
    for part in parts:
        offset += part.offset
        for v, w in part.terms:
            weights[v] = weights.get(v, 0.0) + w
    return Functional.of(weights, offset)
