from __future__ import annotations

import math

import numpy as np
import pytest
from flint import acb, arb
from hypothesis import given, settings
from hypothesis import strategies as st
from interval_oracle import FUNCTIONS, boxes, escapes, inside, moderate, points

from sumformer.algebra import complex_functions as functions
from sumformer.algebra.complex_interval import ComplexInterval
from sumformer.algebra.interval import Interval

ratio = st.floats(0, 1)
narrow = st.tuples(moderate, st.floats(0, 0.5)).map(lambda pair: (pair[0], pair[0] + pair[1]))
sides = st.one_of(boxes(moderate), narrow, narrow, st.just((0.0, 0.0)))


def rectangle(re, im):
    return ComplexInterval(Interval(*re), Interval(*im))


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=200, deadline=None)
@given(re=sides, im=sides, t=ratio)
def test_functions_enclose(name, re, im, t):
    value = functions.UNARY[name](rectangle(re, im))
    real = im == (0.0, 0.0)
    if name in ("log", "sqrt") and not real:
        assert value.defined == (not (re[0] <= 0 and im[0] <= 0 <= im[1]))
    if name in ("exp", "sin", "cos"):
        assert value.defined
    if value.defined:
        assert not real or value.is_real
        for x in points(*re, t):
            for y in points(*im, t):
                assert inside(value, FUNCTIONS[name](acb(x, y))), (x, y)


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_poles_are_never_inside_a_defined_rectangle(name):
    pole = math.pi if name == "sigmoid" else math.pi / 2
    for k in (-3, -1, 1, 3):
        for radius in (1e-12, 0.1, 1.0):
            box = rectangle((-radius, radius / 2), (k * pole - radius, k * pole + radius))
            assert not functions.UNARY[name](box).defined
    beside = functions.UNARY[name](rectangle((0.01, 0.02), (pole - 0.01, pole + 0.01)))
    assert beside.defined


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_far_from_the_axis_nothing_overflows(name):
    limits = {"tanh": -1.0, "sigmoid": 0.0}
    for side, limit in ((1, 1.0), (-1, limits[name])):
        for x in (400.0, 800.0, 1e300):
            value = functions.UNARY[name](rectangle((side * x,) * 2, (1.0, 2.0)))
            assert value.defined
            assert value.re.lo == pytest.approx(limit)
            assert value.re.hi == pytest.approx(limit)
            assert value.im.abs_upper() < 1e-100 or name == "tanh"


@pytest.mark.parametrize(
    ("re", "im"), [((-1.0, -0.5), (-0.1, 0.1)), ((0.0, 1.0), (-1.0, 1.0)), ((0.0, 1.0), (0.0, 1.0))]
)
def test_the_cut_is_outside_every_domain(re, im):
    assert not functions.log(rectangle(re, im)).defined
    assert not functions.sqrt(rectangle(re, im)).defined
    assert not functions.sqrt(rectangle((-1.0, -1.0), (-0.0, 1.0))).defined


def test_above_and_below_the_cut():
    above, below = rectangle((-2.0, -1.0), (5e-324, 1.0)), rectangle((-2.0, -1.0), (-1.0, -5e-324))
    assert functions.log(above).im.hi == pytest.approx(math.pi)
    assert functions.log(below).im.lo == pytest.approx(-math.pi)
    assert functions.sqrt(above).im.lo >= 0.99
    assert functions.sqrt(below).im.hi <= -0.99


def test_real_arguments_take_the_real_function():
    x = ComplexInterval.from_real(Interval(0.0, 4.0))
    assert functions.sqrt(x).defined
    assert functions.sqrt(x).is_real
    assert not functions.sqrt(ComplexInterval.from_real(Interval(-1.0, 4.0))).defined
    assert not functions.log(x).defined
    for function in functions.UNARY.values():
        assert function(ComplexInterval.from_real(Interval(0.5, 4.0))).is_real


def test_what_is_not_analytic_is_undefined_unless_real():
    z = ComplexInterval(Interval([-1.0, -1.0], [2.0, 2.0]), Interval([0.0, 0.0], [0.0, 1.0]))
    w = ComplexInterval.from_real(Interval.point(1.0))
    for value in (functions.absolute(z), functions.minimum(z, w), functions.maximum(z, w)):
        assert value.defined.tolist() == [True, False]
    assert functions.absolute(z).re.hi[0] == 2.0
    assert functions.minimum(z, w).re.hi[0] == 1.0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_small_rectangles_have_small_images(name):
    rng = np.random.default_rng(0)
    x, y, side = rng.uniform(0.2, 2, 500), rng.uniform(-1.2, 1.2, 500), 1e-6
    value = functions.UNARY[name](ComplexInterval(Interval(x, x + side), Interval(y, y + side)))
    derivative = np.abs(np.array([complex(_derivative(name, acb(a, b))) for a, b in zip(x, y, strict=True)]))
    assert value.defined.all()
    assert np.all(value.width() <= 6 * side * derivative + 1e-12)


def _derivative(name, z):
    h = arb(2) ** -100
    return (FUNCTIONS[name](z + h) - FUNCTIONS[name](z)) / h


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_fuzz(name):
    rng = np.random.default_rng(11)
    for scale in (1e-150, 1e-3, 1.0, 8.0, 300.0):
        corner = rng.normal(0, scale, (8_000, 2))
        size = scale * rng.choice([0.0, 1e-12, 0.05, 1.0], (8_000, 2))
        rectangles = ComplexInterval(*(Interval(corner[:, i], corner[:, i] + size[:, i]) for i in (0, 1)))
        value = functions.UNARY[name](rectangles)
        for i in np.flatnonzero(value.defined):
            re, im = ((part.lo[i], part.hi[i]) for part in (rectangles.re, rectangles.im))
            for x in points(*re, rng.random()):
                for y in points(*im, rng.random()):
                    truth = FUNCTIONS[name](acb(x, y))
                    assert not escapes(value.re.lo[i], value.re.hi[i], truth.real), (re, im, x, y)
                    assert not escapes(value.im.lo[i], value.im.hi[i], truth.imag), (re, im, x, y)
