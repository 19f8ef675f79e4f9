"""Boxes and numbers of tokens: reading, writing, exact membership."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sumformer.errors import InputError, OutsideBoxError, ShapeError
from sumformer.targets import Box, Tokens
from sumformer.targets.domain import MAX_TOKENS


def test_boxes_are_read_per_coordinate_or_for_all():
    box = Box.parse("0:1,-2:2", 2)
    assert (box.lower, box.upper) == ((0, -2), (1, 2))
    assert Box.parse("-1:1", 3) == Box((Fraction(-1),) * 3, (Fraction(1),) * 3)
    assert Box.parse(" -1/3 : .5e1 ", 1) == Box((Fraction(-1, 3),), (Fraction(5),))
    assert (box.centre, box.radius) == ((Fraction(1, 2), 0), (Fraction(1, 2), 2))
    assert (box.volume, Box.unit(3).volume, Box.parse("-1/3:1/3", 2).volume) == (4, 1, Fraction(4, 9))
    assert (str(box), str(Box.unit(3)), box.formula(), Box.unit(3).formula()) == (
        "0:1,-2:2",
        "0:1",
        "[0,1]×[-2,2]",
        "[0,1]^3",
    )


@given(st.lists(st.tuples(st.fractions(), st.fractions()).filter(lambda p: p[0] != p[1]), min_size=1, max_size=4))
def test_a_box_reads_back(pairs):
    box = Box(tuple(min(p) for p in pairs), tuple(max(p) for p in pairs))
    assert Box.parse(str(box), box.d) == box


@pytest.mark.parametrize(
    "text",
    ["", "1", "0:1:2", "1:0", "0:0", "a:b", "0:1,0:1,0:1", "nan:1", "0:inf", "0:1/0", "1.5/2:3", "0:1e9999", "_:1"],
)
def test_wrong_boxes_are_refused(text):
    with pytest.raises(InputError):
        Box.parse(text, 2)


def test_wrong_bounds_are_refused():
    for lower, upper in [((), ()), ((Fraction(0),), ()), ((0.0,), (1.0,)), ((Fraction(0),), (Fraction(2**5000),))]:
        with pytest.raises(InputError):
            Box(lower, upper)


def test_membership_is_exact():
    box = Box.parse("0.1:0.2", 1)
    tenth = torch.tensor([[[0.1]], [[0.15]], [[0.2]], [[float("nan")]]], dtype=torch.float64)
    assert Fraction(0.1) > Fraction(1, 10)  # the float is inside
    assert Fraction(0.2) > Fraction(1, 5)  # and this one is not
    assert box.contains(tenth)[:, 0].tolist() == [True, True, False, False]
    assert Box.unit(2).contains(torch.tensor([[0.0, 1.0], [0.5, 1.0001]])).tolist() == [True, False]
    assert Box.parse("-1e400:1e400", 1).contains(torch.tensor([[1e38]])).all()
    with pytest.raises(OutsideBoxError) as caught:
        box.check(tenth)
    assert caught.value.index == (2, 0)
    with pytest.raises(ShapeError):
        box.contains(torch.zeros(3, 2))


@pytest.mark.parametrize(
    ("text", "minimum", "maximum", "symbolic", "formula"),
    [
        ("3", 3, 3, False, "n = 3"),
        ("..1000", 1, 1000, False, "n ≤ 1000"),
        ("2..1000", 2, 1000, False, "2 ≤ n ≤ 1000"),
        ("any", 1, MAX_TOKENS, True, "any n"),
        ("any..500", 1, 500, True, "any n ≤ 500"),
    ],
)
def test_tokens_are_read_and_written(text, minimum, maximum, symbolic, formula):
    tokens = Tokens.parse(text)
    assert (tokens.minimum, tokens.maximum, tokens.symbolic) == (minimum, maximum, symbolic)
    assert (str(tokens), tokens.formula(), tokens.exact) == (text, formula, text == "3")
    assert Tokens.parse(3) == Tokens.parse("3")


@pytest.mark.parametrize("text", ["", "0", "..0", "-1", "3..2", "..", "anyone", "1.5", "many", "9" * 11, True, "5.."])
def test_wrong_tokens_are_refused(text):
    with pytest.raises(InputError):
        Tokens.parse(text)


def test_a_range_the_wrong_way_round_is_said_to_be():
    with pytest.raises(InputError, match="a lower end below the upper one"):
        Tokens.parse("5..2")


def test_at_least():
    assert Tokens.any().at_least(2) == Tokens(2, MAX_TOKENS, symbolic=True)
    assert Tokens.parse("..9").at_least(2).allows(1) is False
    assert Tokens.parse("5").at_least(2) == Tokens.parse("5")
    with pytest.raises(InputError, match="at least 2"):
        Tokens.parse("1").at_least(2)


def test_a_number_of_tokens_that_is_too_large_is_told_the_largest():
    with pytest.raises(InputError, match="1 ≤ n ≤ 1073741824, got 1099511627776"):
        Tokens.parse("1099511627776")
