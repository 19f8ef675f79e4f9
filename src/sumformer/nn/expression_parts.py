"""The parts of an `ExpressionSumformer`, read from its configuration: channels, kernels, products, reductions.

All of them are index bookkeeping: which features exist, and how p ⊛ Σ picks them, T_β T_γ = mean over signs T_{|β±γ|}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product as cartesian
from math import prod
from typing import Any

from sumformer.errors import InputError
from sumformer.nn.program import Program
from sumformer.targets import Const, parse, reductions
from sumformer.targets.tree import Reduce

MultiIndex = tuple[int, ...]
Polynomial = tuple[tuple[MultiIndex, Fraction], ...]


@dataclass(frozen=True)
class Channel:
    """Features b(y)·T_β(v), β in `support`. Of the channel b = 1 the feature T_0 is the count itself and not stored."""

    factor: Program
    is_one: bool
    d: int
    support: tuple[MultiIndex, ...]
    suffixes: tuple[MultiIndex, ...]

    @staticmethod
    def read(data: Mapping[str, Any], d: int) -> Channel:
        support = tuple(tuple(int(b) for b in beta) for beta in data["support"])
        if any(len(beta) != d or min(beta) < 0 for beta in support) or len(set(support)) != len(support):
            raise InputError(f"channel: expected distinct multi-indices of length {d}")
        suffixes = tuple(sorted({beta[1:] for beta in support})) or ((0,) * (d - 1),)
        factor = parse(data["factor"], d, free_y=True)
        if factor.width != 1 or "x" in factor.free:
            raise InputError(f"channel: expected a number that depends on y alone, got {data['factor']!r}")
        is_one = isinstance(factor, Const) and factor.value == 1
        return Channel(Program(factor, {}), is_one, d, support, suffixes)

    @property
    def degrees(self) -> MultiIndex:
        return tuple(max(column) for column in zip(*self.support, strict=True)) if self.support else (0,) * self.d

    def flat_index(self) -> list[int]:
        """Where T_β lies in the (first coordinate × suffixes) matrix, row by row."""
        place = {suffix: i for i, suffix in enumerate(self.suffixes)}
        return [beta[0] * len(self.suffixes) + place[beta[1:]] for beta in self.support]

    def places(self, offset: int, one: int) -> dict[MultiIndex, int]:
        """Where the features stand in [Σ/n | 1], from `offset` on."""
        place = {beta: offset + i for i, beta in enumerate(self.support)}
        return place | {(0,) * self.d: one} if self.is_one else place

    def suffix_column(self, c: int) -> list[int]:
        """The degree in coordinate c ≥ 1 of every suffix."""
        return [suffix[c - 1] for suffix in self.suffixes]


@dataclass(frozen=True)
class Kernel:
    """K̃(x, y) = Σ_{α,β} A_{αβ} T_α(u) T_β(v) in the coordinates it mentions; A is (Π(x_degree+1), Π(y_degree+1))."""

    coordinates: tuple[int, ...]
    x_degrees: tuple[int, ...]
    y_degrees: tuple[int, ...]
    x_size: int
    y_size: int

    @staticmethod
    def read(data: Mapping[str, Any]) -> Kernel:
        x_degrees, y_degrees = tuple(data["x_degrees"]), tuple(data["y_degrees"])
        sizes = (prod(n + 1 for n in x_degrees), prod(n + 1 for n in y_degrees))
        return Kernel(tuple(data["coordinates"]), x_degrees, y_degrees, *sizes)

    def x_degree(self, c: int) -> int:
        return self.x_degrees[self.coordinates.index(c)] if c in self.coordinates else 0


@dataclass
class SeriesOfProduct:
    """A product of kernels; `series` are the (channel, p) that are summed against it."""

    series: list[tuple[int, Polynomial]] = field(default_factory=list, init=False)

    @property
    def series_count(self) -> int:
        return len(self.series)

    def add_series(self, channel: int, polynomial: Polynomial) -> int:
        """The place of (channel, p) among the series, added if new."""
        key = (channel, polynomial)
        if key not in self.series:
            self.series.append(key)
        return self.series.index(key)


@dataclass
class Product(SeriesOfProduct):
    """Π_g K̃_g restricted to the features β in `support`."""

    kernels: tuple[int, ...]
    support: tuple[MultiIndex, ...]
    parts: tuple[Kernel, ...]
    y_shape: tuple[int, ...]

    @staticmethod
    def read(data: Mapping[str, Any], kernels: Sequence[Kernel]) -> Product:
        chosen = tuple(int(k) for k in data["kernels"])
        support = tuple(tuple(int(b) for b in beta) for beta in data["support"])
        parts = tuple(kernels[k] for k in chosen)
        return Product(chosen, support, parts, tuple(kernel.y_size for kernel in parts) or (1,))

    @property
    def x_total(self) -> int:
        return prod(kernel.x_size for kernel in self.parts)

    @property
    def row_width(self) -> int:
        """Numbers held per token while Σ_α T_α(u) Q_α is contracted coordinate by coordinate."""
        first = self.parts[0].x_degrees[0] + 1 if self.parts else 1
        return first + self.x_total // first * self.series_count

    def support_index(self) -> list[int]:
        """Where β lies in the tensor of shape `y_shape`, flattened."""
        out = []
        for beta in self.support:
            place = 0
            for kernel in self.parts:
                for c, degree in zip(kernel.coordinates, kernel.y_degrees, strict=True):
                    if beta[c] > degree:
                        raise InputError(f"product: the feature {beta} exceeds degree {degree} in coordinate {c}")
                    place = place * (degree + 1) + beta[c]
            out.append(place)
        return out

    def shift_plan(
        self, channels: Sequence[Channel], offsets: Sequence[int], one: int
    ) -> tuple[list[int], list[float], int]:
        """(p ⊛ Σ)_β for every series and β: which entries of [Σ/n | 1] to add, with which factors, and how many."""
        places = [channel.places(offset, one) for channel, offset in zip(channels, offsets, strict=True)]
        rows = [_shifted(beta, polynomial, places[i]) for i, polynomial in self.series for beta in self.support]
        width = max((len(row) for row in rows), default=1)
        padded = [row + [(0, Fraction(0))] * (width - len(row)) for row in rows]
        return [i for row in padded for i, _ in row], [float(w) for row in padded for _, w in row], width


def _shifted(beta: MultiIndex, polynomial: Polynomial, place: Mapping[MultiIndex, int]) -> list[tuple[int, Fraction]]:
    entries: dict[int, Fraction] = {}
    for index, weight in shift(beta, polynomial).items():
        if index not in place:
            raise InputError(f"product: the feature {index} is needed but its channel does not hold it")
        entries[place[index]] = weight
    return sorted(entries.items())


def shift(beta: MultiIndex, polynomial: Polynomial) -> dict[MultiIndex, Fraction]:
    """T_β · p = Σ weight · T_index."""
    out: dict[MultiIndex, Fraction] = {}
    for gamma, coefficient in polynomial:
        pairs = [{b + g, abs(b - g)} for b, g in zip(beta, gamma, strict=True)]
        share = coefficient / prod(len(p) for p in pairs)
        for index in cartesian(*pairs):
            out[index] = out[index] + share if index in out else share
    return {index: weight for index, weight in out.items() if weight}


@dataclass(frozen=True)
class ReductionTerm:
    """a(x) times one series of one product; `own` is the place of a(x) among the network's own factors."""

    own: int
    product: int
    series: int


@dataclass(frozen=True)
class Reduction:
    """A reduction of the target and, for each of its coordinates, the terms it is the sum of."""

    node: Reduce
    kind: str
    components: tuple[tuple[ReductionTerm, ...], ...]

    @staticmethod
    def read(
        data: Mapping[str, Any],
        d: int,
        channels: int,
        products: Sequence[SeriesOfProduct],
        known: Mapping[Reduce, int],
        own: dict[str, Program],
    ) -> Reduction:
        """`known`: the places of the reductions read before this one, which own factors may use; `own` is extended."""
        node = parse(data["reduction"], d)
        if not isinstance(node, Reduce) or len(data["components"]) != node.width:
            raise InputError("reduction: expected a reduction and one list of terms per coordinate")
        components = tuple(
            tuple(_read_term(t, d, channels, products, known, own) for t in terms) for terms in data["components"]
        )
        return Reduction(node, node.kind, components)


def _read_term(
    data: Mapping[str, Any],
    d: int,
    channels: int,
    products: Sequence[SeriesOfProduct],
    known: Mapping[Reduce, int],
    own: dict[str, Program],
) -> ReductionTerm:
    channel, product = int(data["channel"]), int(data["product"])
    if not (0 <= channel < channels and 0 <= product < len(products)):
        raise InputError("term: its channel or product does not exist")
    polynomial = tuple((tuple(int(g) for g in gamma), Fraction(c)) for gamma, c in data["polynomial"])
    source = str(data["own"])
    if source not in own:
        factor = parse(source, d)
        if factor.width != 1 or any(part not in known for part in reductions(factor)):
            raise InputError(f"term: {source!r} is not a number, or uses a reduction that is not listed before it")
        own[source] = Program(factor, known)
    return ReductionTerm(list(own).index(source), product, products[product].add_series(channel, polynomial))
