"""Functions of places at all places at once, against the value at each."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sumformer.certificates.checker.positions.placed import PlacedValues
from sumformer.certificates.checker.tree_values import components
from sumformer.targets import parse
from sumformer.targets.tree import Slice, Token

N, D = 4, 2


class Exact:
    """ℚ."""

    const = staticmethod(lambda value: value)
    add = staticmethod(lambda a, b: a + b)
    sub = staticmethod(lambda a, b: a - b)
    neg = staticmethod(lambda a: -a)
    mul = staticmethod(lambda a, b: a * b)
    div = staticmethod(lambda a, b: a / b)
    power = staticmethod(lambda v, k: v**k)
    extremum = staticmethod(lambda op, a, b: (max if op == "max" else min)(a, b))
    function = staticmethod(lambda fn, v: {"abs": abs}[fn](v))


def value(source, q, p):
    tokens = {"x": [None, Fraction(q)], "y": [None, Fraction(p)]}
    return components(parse(source, D, free_y=True), Exact, lambda part: tokens.get(getattr(part, "name", None)))[0]


@pytest.mark.parametrize(
    "source",
    [
        "x[1] - y[1]",
        "max(0, min(1, x[1] - y[1] + 1))*(y[1]**2 - 1/3)",
        "abs(-x[1] + 2)/(y[1] + 0.5) + 7",
        "x[1]**-2",
        "5/3",
    ],
)
def test_at_every_place(source):
    node, placed = parse(source, D, free_y=True), PlacedValues(N, D)
    assert placed.order(node) == (node,)
    for q in range(1, N + 1):
        for p in range(1, N + 1):
            assert placed.at(node, q, p) == value(source, q, p)


@pytest.mark.parametrize("source", ["x[0]*x[1]", "exp(x[1])", "1/(x[1] - y[1])", "(y[1] - 2)**-1", "cat(x[1], y[1])"])
def test_what_is_more_than_a_number_is_left_to_forms(source):
    node, placed = parse(source, D, free_y=True), PlacedValues(N, D)
    assert placed.order(node)[-1] == node
    assert len(placed.order(node)) > 1
    assert placed.at(node, 1, 2) is None


def test_parts_that_are_known_stand_for_all_that_is_in_them():
    node, placed = parse("x[0]*(x[1] + 2)*(y[1] - 1)", D, free_y=True), PlacedValues(N, D)
    order = placed.order(node)
    assert parse("x[1] + 2", D) in order
    assert Slice(Token("x", D), 1, 2) not in order
    assert placed.at(parse("x[1] + 2", D), 3, None) == 5
