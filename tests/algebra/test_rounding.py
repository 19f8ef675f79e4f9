from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sumformer.algebra import rounding
from sumformer.errors import InputError


@given(st.fractions())
def test_a_fraction_lies_between_its_bounds_and_they_are_neighbours(value):
    lo, hi = rounding.fraction_bounds(value)
    assert Fraction(lo) <= value <= Fraction(hi)
    assert hi in (lo, math.nextafter(lo, math.inf))


def test_fractions_beyond_the_floats():
    assert rounding.fraction_bounds(Fraction(10) ** 400) == (rounding.MAX, math.inf)
    assert rounding.fraction_bounds(-(Fraction(10) ** 400)) == (-math.inf, -rounding.MAX)
    assert rounding.fraction_bounds(Fraction(1, 10**400)) == (0.0, rounding.TINY)
    assert rounding.fraction_bounds(Fraction(rounding.MAX) + 1) == (rounding.MAX, math.inf)


def test_gamma_is_rounded_up_and_refuses_when_it_means_nothing():
    exact = Fraction(1000, 2**24) / (1 - Fraction(1000, 2**24))
    assert exact <= Fraction(rounding.gamma(1000, 2.0**-24)) <= exact * (1 + Fraction(1, 2**50))
    assert rounding.gamma(0, 0.1) == 0.0
    with pytest.raises(InputError, match="k u < 1/2"):
        rounding.gamma(2**23, 2.0**-24)


@pytest.mark.parametrize(("dtype", "u"), [("float64", 2.0**-53), (np.float32, 2.0**-24), ("torch.bfloat16", 2.0**-8)])
def test_unit_roundoff(dtype, u):
    assert rounding.unit_roundoff(dtype) == u


def test_unit_roundoff_refuses_integers():
    with pytest.raises(InputError):
        rounding.unit_roundoff("int64")


@given(st.lists(st.floats(0, 1e300), max_size=40))
def test_sum_up_of_few(values):
    assert sum(map(Fraction, values)) <= Fraction(rounding.sum_up(values))


def test_sum_up_of_many_and_of_too_much():
    values = np.random.default_rng(0).lognormal(0, 5, 5000)
    exact = sum(map(Fraction, values.tolist()))
    assert exact <= Fraction(rounding.sum_up(values)) <= exact * (1 + Fraction(1, 10**12))
    assert rounding.sum_up([1e308, 1e308]) == math.inf
    assert rounding.sum_up(np.full(5000, 1e308)) == math.inf
    assert rounding.sum_up([math.inf]) == math.inf
    assert rounding.sum_up([]) == rounding.sum_up(np.zeros(3000)) == 0.0
    with pytest.raises(InputError):
        rounding.sum_up([1.0, -1.0])


@given(st.floats(allow_nan=False))
def test_libm_widening_is_more_than_the_assumed_error(value):
    lo, hi = rounding.libm_down(np.float64(value)), rounding.libm_up(np.float64(value))
    if math.isfinite(value):
        ulp = Fraction(math.ulp(value)) * rounding.LIBM_ULPS
        assert Fraction(float(lo)) <= Fraction(value) - ulp if math.isfinite(lo) else lo == -math.inf
        assert Fraction(value) + ulp <= Fraction(float(hi)) if math.isfinite(hi) else hi == math.inf
    else:
        assert lo <= rounding.MAX
        assert hi >= -rounding.MAX
