"""Printing: canonical, minimal, and the inverse of parsing."""

from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sumformer.targets import Const, parse, to_source
from sumformer.targets.parser import MAX_SOURCE

from .random_trees import random_tree


@settings(max_examples=1000)
@given(st.integers(0, 2**63), st.integers(1, 4), st.integers(0, 7))
def test_printing_then_parsing_gives_the_tree_back(seed, d, depth):
    tree = random_tree(Random(seed), d, depth, y=True)
    source = to_source(tree)
    if len(source) <= MAX_SOURCE:
        again = parse(source, d, free_y=True)
        assert again == tree
        assert to_source(again) == source


@settings(max_examples=500)
@given(st.fractions())
def test_every_constant_survives_alone_and_inside(value):
    for tree in (
        Const(value),
        parse("x", 1) * Const(value),
        Const(value) * parse("x", 1),
        parse("x", 1) - Const(value),
    ):
        assert parse(to_source(tree), 1) == tree


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_print_short_and_survive(value):
    source = to_source(parse("x", 1) + value)
    assert len(source) < 34
    assert parse(source, 1) == parse("x", 1) + value


@pytest.mark.parametrize(
    "source",
    [
        "x + 7*x**2 + 3*x*sum_others(y)**3",
        "-x**2",
        "(-x)**2",
        "x - (x - 1)",
        "x/(x/x)",
        "x*(1/3)",
        "1/3*x",
        "x - -x",
        "x*-2",
        "-(x + x)",
        "-(x*x)",
        "(x**2)**3",
        "(x + 1)[0]",
        "exp(x)[0]",
        "-1/3*x",
        "x**-2",
        "cat(x[0], x[1:3])[0:2]",
        "max(max(y), x)",
        "0.245*x + 1e-20 + 1.5e22 - 12.75",
    ],
)
def test_canonical_sources_print_as_they_are(source):
    assert to_source(parse(source, 3)) == source


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(1, 10), "0.1"),
        (Fraction(-1, 1000), "-0.001"),
        (Fraction(1, 3), "1/3"),
        (Fraction(-7, 3), "-7/3"),
        (Fraction(1, 10**20), "1e-20"),
        (Fraction(10**20), "1e20"),
        (Fraction(123456789), "123456789"),
        (Fraction(5, 4), "1.25"),
    ],
)
def test_constants_read_well(value, text):
    assert to_source(Const(value)) == text
