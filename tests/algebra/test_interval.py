from __future__ import annotations

import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from interval_oracle import boxes, escapes, inside, points, reals

from sumformer.algebra.interval import Interval, concatenate, require_defined, select
from sumformer.errors import DomainError, InputError

ratio = st.floats(0, 1)
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


@pytest.mark.parametrize("name", OPERATIONS)
@settings(max_examples=150, deadline=None)
@given(a=boxes(), b=boxes(), s=ratio, t=ratio)
def test_arithmetic_encloses(name, a, b, s, t):
    operation = OPERATIONS[name]
    value = operation(Interval(*a), Interval(*b))
    assert value.defined == (name != "/" or not b[0] <= 0 <= b[1])
    assert value.lo <= value.hi
    for x in points(*a, s):
        for y in points(*b, t):
            if not (name == "/" and y == 0):
                assert inside(value, operation(arb(x), arb(y))), (x, y)


@settings(max_examples=300, deadline=None)
@given(a=boxes(), k=st.integers(-7, 9), t=ratio)
def test_powers_enclose(a, k, t):
    value = Interval(*a) ** k
    for x in points(*a, t):
        if k >= 0 or x != 0:
            assert inside(value, arb(x) ** k)


@settings(max_examples=100, deadline=None)
@given(a=boxes(), b=boxes(), s=ratio, t=ratio)
def test_square_abs_min_max_hull(a, b, s, t):
    x, y = Interval(*a), Interval(*b)
    for p in points(*a, s):
        assert inside(x.square(), arb(p) ** 2)
        assert abs(x).contains(abs(p))
        assert x.hull(y).contains(p)
        for q in points(*b, t):
            assert x.minimum(y).contains(min(p, q))
            assert x.maximum(y).contains(max(p, q))
    assert x.contains(x.mid())
    assert not escapes(0, x.width().item(), arb(a[1]) - arb(a[0]))


@settings(max_examples=50, deadline=None)
@given(st.lists(reals, min_size=1, max_size=20))
def test_sum_encloses(values):
    assert inside(Interval.point(np.array(values)).sum(), sum((arb(v) for v in values), arb(0)))


def test_even_powers_are_tight_and_odd_ones_keep_the_sign():
    x = Interval(-1.0, 2.0)
    assert (x**2).lo == 0
    assert (x**2).hi == 4
    assert (x**3).lo == -1
    assert (x**3).hi == 8
    assert (x**0).lo == (x**0).hi == 1
    assert not (x**-1).defined


def test_sums_that_are_exact_stay_exact_and_zero_annihilates():
    x = Interval(0.1, 0.3)
    assert ((x + 0.0).lo, (x + 0.0).hi) == (0.1, 0.3)
    assert (Interval.point(2.0) + Interval.point(3.0)).hi == 5.0
    everything = Interval(-math.inf, math.inf)
    for zero in (Interval.point(0.0), Interval.point(-0.0)):
        assert (zero * everything).is_zero
        assert (zero * x).is_zero
        assert (zero / x).is_zero


def test_unbounded_ends_never_give_nan():
    everything, ray = Interval(-math.inf, math.inf), Interval(1.0, math.inf)
    for value in (everything - everything, ray - ray, ray * everything, ray / ray, everything / ray, everything**2):
        assert not np.isnan(value.lo)
        assert not np.isnan(value.hi)
    assert ((ray / ray).lo, (ray / ray).hi) == (0.0, math.inf)
    assert (Interval(0.0, 1.0) * ray).lo == 0.0
    assert everything.mid() == 0.0
    huge = Interval.point(1e308)
    assert (huge * huge).lo <= np.finfo(float).max
    assert (huge * huge).hi == math.inf
    assert (huge + huge).hi == math.inf


def test_signs_survive_underflow():
    tiny = Interval.point(5e-324)
    assert (tiny * tiny).lo == 0.0
    assert (tiny * tiny).hi > 0.0
    assert (tiny * -tiny).hi == 0.0
    assert (tiny * -tiny).lo < 0.0
    assert (Interval(0.0, 1.0) * Interval(0.0, 1.0)).lo == 0.0


@pytest.mark.parametrize("denominator", [(-0.0, 1.0), (0.0, 1.0), (-1.0, 0.0), (-1.0, -0.0), (-1.0, 1.0), (0.0, 0.0)])
def test_division_by_what_may_be_zero_is_undefined(denominator):
    value = 1 / Interval(*denominator)
    assert not value.defined
    assert (value.lo, value.hi) == (-math.inf, math.inf)


def test_undefined_entries_spread_to_all_that_depends_on_them_and_to_nothing_else():
    x = Interval([-1.0, 1.0], [1.0, 2.0])
    value = 0.0 * (1 / x) + 1
    assert value.defined.tolist() == [False, True]
    assert value.lo[0] == -math.inf
    assert not value.sum().defined
    assert require_defined(value[1:], "1/x") is not None
    with pytest.raises(DomainError, match=r"1/x may leave its domain on Interval.*entry \(0,\)") as caught:
        require_defined(value, "1/x", x)
    assert (caught.value.expression, caught.value.where) == ("1/x", (0,))


def test_intersect_keeps_what_both_leave():
    value = Interval([0.0, 0.0], [2.0, 1.0]).intersect(Interval([1.0, 3.0], [3.0, 4.0]))
    assert (value.lo[0], value.hi[0]) == (1.0, 2.0)
    assert value.defined.tolist() == [True, False]


def test_arrays_slice_concatenate_select_and_broadcast():
    x = Interval(np.zeros((4, 1, 2)), np.ones((4, 1, 2)))
    y = Interval(np.full((3, 1), 2.0), np.full((3, 1), 3.0))
    joined = concatenate([x, y])
    assert joined.shape == (4, 3, 3)
    assert joined.lo[0, 0].tolist() == [0.0, 0.0, 2.0]
    assert (x + y).shape == (4, 3, 2)
    assert select(np.array([True, False]), Interval.point(1.0), Interval.point(2.0)).lo.tolist() == [1.0, 2.0]
    assert Interval(np.zeros((2, 0)), np.zeros((2, 0))).sum().is_zero.all()
    assert (np.ones(3) + Interval.point(1.0)).lo.tolist() == [2.0, 2.0, 2.0]
    assert (np.float64(2.0) - Interval.point(1.0)).lo == 1.0


def test_exact_numbers():
    third = Interval.from_fraction(Fraction(1, 3))
    assert Fraction(third.lo.item()) < Fraction(1, 3) < Fraction(third.hi.item())
    assert third.width() <= 2**-54
    big = Interval.lift(2**53 + 1)
    assert (big.lo, big.hi) == (2.0**53, 2.0**53 + 2)


@pytest.mark.parametrize("ends", [(1.0, 0.0), (math.nan, 1.0), (math.inf, math.inf), (-math.inf, -math.inf)])
def test_what_is_no_interval_is_refused(ends):
    with pytest.raises(InputError):
        Interval(*ends)
