"""Slopes over a box: each rule beside the derivative it encloses, corners and ties included."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sumformer.algebra.interval import Interval
from sumformer.algebra.slope import SlopeOperations, times

LO, HI = np.array([[-0.5, 0.25]]), np.array([[1.0, 0.75]])


@pytest.fixture
def ops():
    return SlopeOperations(np.array([[1.0, 2.0]]))  # two variables, the second may move twice as far


@pytest.fixture
def point(ops):
    return ops.variable(Interval(LO, HI), (0, 1), np.array([1.0, 2.0]))


def ends(slope):
    return slope.gradient.lo.ravel().tolist(), slope.gradient.hi.ravel().tolist()


DERIVATIVES = {
    "exp": math.exp,
    "sin": math.cos,
    "cos": lambda t: -math.sin(t),
    "tanh": lambda t: 1 - math.tanh(t) ** 2,
    "sigmoid": lambda t: math.exp(-t) / (1 + math.exp(-t)) ** 2,
}


@pytest.mark.parametrize("fn", DERIVATIVES)
def test_the_derivative_of_a_smooth_function_lies_in_the_enclosure(ops, point, fn):
    first = ops.slice(point, 0, 1)
    slope = ops.unary(fn, first)
    inside = [DERIVATIVES[fn](t) for t in np.linspace(-0.5, 1.0, 101)]
    (lo, zero), (hi, _) = ends(slope)
    assert lo <= min(inside) <= max(inside) <= hi <= 1.1 * max(inside) + 1e-9
    assert zero == 0
    assert max(abs(v) for v in inside) <= slope.length.item() <= max(abs(lo), abs(hi)) * (1 + 1e-9)


def test_log_and_sqrt_where_they_are_steep(ops, point):
    second = ops.slice(point, 1, 2)
    assert ops.unary("log", second).length.item() == pytest.approx(2 / 0.25)
    assert ops.unary("sqrt", second).length.item() == pytest.approx(2 / (2 * 0.5))
    assert not ops.reasons
    assert ops.unary("sqrt", ops.unary("abs", ops.slice(point, 0, 1))).length.item() == math.inf
    assert any("sqrt is infinitely steep" in reason for reason in ops.reasons)


def test_abs_knows_its_sign_or_both(ops, point):
    low, high = ends(ops.unary("abs", point))
    assert low == pytest.approx([-1.0, 0.0, 0.0, 1.0])
    assert high == pytest.approx([1.0, 0.0, 0.0, 1.0])
    nothing = ops.variable(Interval(np.zeros((1, 1)), np.zeros((1, 1))), (0,), 1.0)
    assert ends(ops.unary("abs", nothing))[0] == pytest.approx([-1.0, 0.0])


def test_a_maximum_mixes_what_may_attain_it(ops, point):
    a, b = ops.slice(point, 0, 1), ops.slice(point, 1, 2)
    mixed = ops.extremum("max", a, b)
    assert ends(mixed) == ([0.0, 0.0], [1.0, 1.0])
    assert mixed.length.item() == pytest.approx(2.0)  # not 1 + 2
    far = ops.add(a, ops.const(Fraction(5)))
    assert ends(ops.extremum("max", far, b)) == ([1.0, 0.0], [1.0, 0.0])
    assert ends(ops.extremum("min", far, b)) == ([0.0, 1.0], [0.0, 1.0])


def test_the_norm_is_one_lipschitz_also_where_it_vanishes(ops, point):
    moved = ops.sub(point, ops.cat([ops.const(Fraction(0)), ops.const(Fraction(1, 2))]))  # both coordinates reach 0
    assert ops.norm(moved).length.item() == pytest.approx(math.hypot(1.0, 2.0))
    away = ops.add(point, ops.const(Fraction(100)))
    assert ops.norm(away).length.item() < 2.2


def test_products_quotients_and_powers(ops, point):
    a, b = ops.slice(point, 0, 1), ops.slice(point, 1, 2)
    product = ops.mul(a, b)
    assert ends(product)[0][0] <= 0.25 <= 0.75 <= ends(product)[1][0]
    assert product.length.item() == pytest.approx(0.75 + 2 * 1.0)
    assert ops.mul(a, a).length.item() == pytest.approx(2.0)
    assert ops.power(b, -1).length.item() == pytest.approx(2 / 0.25**2)
    assert ops.power(a, 0).length.item() == 0.0
    assert ops.div(a, b).length.item() == pytest.approx((1 + 4 * 2) / 0.25)
    assert ops.div(b, a).length.item() == math.inf
    assert "a denominator may vanish" in ops.reasons


def test_cancellation_is_seen_by_the_gradient(ops, point):
    a = ops.slice(point, 0, 1)
    assert ops.sub(ops.add(a, a), a).length.item() == pytest.approx(1.0)  # lengths alone would add up to 3
    assert ops.sub(a, a).length.item() == 0.0


def test_bounds_neither_underflow_nor_forget_infinity():
    tiny = np.array([1e-200, 0.0, 0.0, np.inf])
    other = np.array([1e-200, np.inf, 5.0, 2.0])
    assert times(tiny, other).tolist() == [2.0**-1022, 0.0, 0.0, np.inf]


def test_lengths_of_quotients_neither_underflow_nor_forget_a_denominator_that_vanishes(ops):
    tiny = ops.variable(Interval(np.array([[0.0]]), np.array([[1e-200]])), (0,), np.array([1e-200]))
    huge = ops.variable(Interval(np.array([[1e200]]), np.array([[1e201]])), None, 0.0)
    assert 2.0**-1022 <= ops.div(tiny, huge).length.item() <= 1e-307
    assert ops.div(huge, huge).length.item() == 0.0
    assert ops.div(huge, tiny).length.item() == math.inf


def test_the_slope_of_a_sigmoid_of_what_is_not_defined_is_not(ops):
    nowhere = ops.unary("log", ops.variable(Interval(np.array([[-2.0]]), np.array([[-1.0]])), (0,), 1.0))
    slope = ops.unary("sigmoid", nowhere)
    assert not bool(slope.gradient.defined.all())
    assert not math.isfinite(slope.length.item())
