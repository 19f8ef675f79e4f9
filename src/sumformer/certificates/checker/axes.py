"""Which coordinates of x and y a value depends on: sets of ("x", c) and ("y", c), united by every operation."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Generic, TypeVar

from sumformer.certificates.checker.network import Network, Term
from sumformer.certificates.checker.tree_values import components
from sumformer.targets.node import Node
from sumformer.targets.tree import Reduce, Token

T = TypeVar("T")
Axes = frozenset[tuple[str, int]]


class UnionOperations(Generic[T]):
    """Sets of what values depend on: every operation depends on what its operands depend on."""

    def const(self, value: Fraction) -> frozenset[T]:
        return frozenset()

    def add(self, a: frozenset[T], b: frozenset[T]) -> frozenset[T]:
        return a | b

    sub = mul = div = add

    def neg(self, a: frozenset[T]) -> frozenset[T]:
        return a

    def power(self, v: frozenset[T], k: int) -> frozenset[T]:
        return v

    def total(self, values: list[frozenset[T]]) -> frozenset[T]:
        return frozenset().union(*values)

    norm = total

    def extremum(self, op: str, a: frozenset[T], b: frozenset[T]) -> frozenset[T]:
        return a | b

    def function(self, fn: str, v: frozenset[T]) -> frozenset[T]:
        return v


def axes_of(node: Node, reduced: Mapping[Reduce, list[Axes]] | None = None) -> list[Axes]:
    """Per coordinate of `node`; reductions as given, else depending on nothing."""

    def leaf(part: Node) -> list[Axes] | None:
        if isinstance(part, Token):
            return [frozenset({(part.name, c)}) for c in range(part.width)]
        if isinstance(part, Reduce):
            return [frozenset()] * part.width if reduced is None else reduced[part]
        return None

    return components(node, UnionOperations[tuple[str, int]](), leaf)


def most_axes(net: Network) -> int:
    """The largest number of coordinates that meet in one array of the proof."""
    reduced: dict[Reduce, list[Axes]] = {}
    most = 1
    for reduction in net.reductions:
        widths = []
        for body, terms in zip(axes_of(reduction.node.body, reduced), reduction.components, strict=True):
            met = body.union(*(_term_axes(term, net, reduced) for term in terms))
            most = max(most, len(met))
            widths.append(frozenset(axis for axis in met if axis[0] == "x"))
        reduced[reduction.node] = widths
    return max([most, *(len(axes) for axes in axes_of(net.expression, reduced))])


def _term_axes(term: Term, net: Network, reduced: Mapping[Reduce, list[Axes]]) -> Axes:
    coordinates = {c for g in net.products[term.product].kernels for c in net.kernels[g].coordinates}
    polynomial = {("y", c) for gamma, _ in term.polynomial for c, degree in enumerate(gamma) if degree}
    both = {(name, c) for name in ("x", "y") for c in coordinates}
    own, channel = axes_of(term.own, reduced)[0], axes_of(net.channels[term.channel].factor)[0]
    return frozenset(own | channel | both | polynomial)


def kernel_failures(net: Network) -> list[str]:
    """Kernels that read a coordinate they do not list."""
    out = []
    for g, kernel in enumerate(net.kernels):
        if any(c not in kernel.coordinates for _, c in axes_of(kernel.expression)[0]):
            out.append(f"kernel {g}: its expression mentions a coordinate that is not listed")
    return out
