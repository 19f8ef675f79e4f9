from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sumformer.errors import InputError, RefusedError
from sumformer.theorems.yun_2020_deep.four_relus import float64, four_relus, relu_stack
from sumformer.theorems.yun_2020_deep.grid import as_exact
from sumformer.theorems.yun_2020_deep.token_layers import layers

number = st.fractions(min_value=-5, max_value=5, max_denominator=8)


@given(
    middle=st.booleans(),
    c=st.tuples(number, st.fractions(min_value=Fraction(3, 2), max_value=4, max_denominator=8)),
    slopes=st.tuples(number, number),
    offsets=st.tuples(number, number),
    t=st.fractions(min_value=-12, max_value=12, max_denominator=64),
)
def test_equal_to_phi_off_the_ramps(middle, c, slopes, offsets, t):
    e = Fraction(1, 4)
    c1, c2 = c[0], c[0] + c[1]
    place = (1, 0) if middle else (0, 1)  # the constant piece is 0
    a, b = [Fraction(0)] * 3, [Fraction(0)] * 3
    others = [i for i in range(3) if i != place[0]]
    for i, slope, offset in zip(others, slopes, offsets, strict=True):
        a[i], b[i] = slope, offset
    row = layers([{"w1": [1], "w2": [1], "c": [c1, c2], "a": a, "b": b}])
    sigma, beta, k = (values[0] for values in four_relus(row, e))
    got = sum(k[i] * max(sigma[i] * t + beta[i], Fraction(0)) for i in range(4))
    piece = int(t >= c1) + int(t >= c2)
    wanted = a[piece] * t + b[piece]
    if c1 - e < t < c1 or c2 - e < t < c2:
        ends = [a[i] * end + b[i] for i, end in ((0, c1 - e), (1, c1), (1, c2 - e), (2, c2))]
        assert min(ends) <= got <= max(ends)
    else:
        assert got == wanted


def test_a_phi_without_a_zero_piece_is_refused():
    row = layers([{"w1": [1], "w2": [1], "c": [0, 1], "a": [1, 1, 1], "b": [1, 1, 1]}])
    with pytest.raises(InputError, match="left or the middle"):
        relu_stack(row, Fraction(1, 4))


def test_weights_that_are_no_float64_are_refused():
    assert float64(as_exact([[2**53, Fraction(1, 4)]])).tolist() == [[2.0**53, 0.25]]
    with pytest.raises(RefusedError, match="not a float64"):
        float64(as_exact([2**53 + 1]))
    with pytest.raises(RefusedError, match="not a float64"):
        float64(as_exact(np.array([Fraction(1, 3)], dtype=object)))
