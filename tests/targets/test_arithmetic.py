"""Normal form: exact arithmetic on constants."""

from fractions import Fraction

import pytest

from sumformer.targets import Binary, Const, Neg, Node, Power, as_node, parse
from sumformer.targets.tree import MAX_BITS


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1/3", Fraction(1, 3)),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("2*0.35**2", Fraction(245, 1000)),
        ("-2**2", Fraction(-4)),
        ("(-2)**-3", Fraction(-1, 8)),
        ("1e-3 - 1", Fraction(-999, 1000)),
        ("--5", Fraction(5)),
        ("+.5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("0**0", Fraction(1)),
        ("1E2", Fraction(100)),
    ],
)
def test_constants_fold(source, value):
    assert parse(source, 1) == Const(value)


def test_only_constants_fold():
    assert isinstance(parse("x*2*3", 1), Binary)
    assert parse("x*2*3", 1).size == 5
    assert isinstance(parse("--x", 1), Neg)


def test_long_results_stay_as_written():
    big = as_node(2 ** (MAX_BITS - 1))
    assert isinstance(big * big, Binary)
    assert isinstance(big + big, Binary)
    assert isinstance(big**64, Power)
    assert big - big == as_node(0)


def test_a_float_is_the_decimal_it_prints_as():
    assert as_node(0.1) == Const(Fraction(1, 10))
    assert as_node(1e-300) == Const(Fraction(1, 10**300))
    assert isinstance(as_node(5e-324), Node)
