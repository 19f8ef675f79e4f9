"""Tokenizer: pieces, positions, exact numbers."""

from fractions import Fraction

import pytest

from sumformer.errors import TargetError
from sumformer.targets.tokenizer import tokenize


def test_pieces_with_positions():
    pieces = [(p.kind, p.text, p.position) for p in tokenize("x ** -2e1")]
    assert pieces == [("name", "x", 0), ("sign", "**", 2), ("sign", "-", 5), ("number", "2e1", 6), ("end", "", 9)]


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.1", Fraction(1, 10)), (".5", Fraction(1, 2)), ("5.", Fraction(5)), ("1e-3", Fraction(1, 1000)), ("007", 7)],
)
def test_numbers_are_exact(text, value):
    assert tokenize(text)[0].value == value


@pytest.mark.parametrize("text", ["1e401", "1e-401", "0" * 1301, "1e" + "0" * 20, "x $ y", "٣"])
def test_out_of_bounds(text):
    with pytest.raises(TargetError) as caught:
        tokenize(text)
    assert caught.value.position is not None
