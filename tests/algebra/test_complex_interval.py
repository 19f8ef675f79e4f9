from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from flint import acb
from hypothesis import given, settings
from hypothesis import strategies as st
from interval_oracle import boxes, escapes, inside, points, reals

from sumformer.algebra.complex_interval import ComplexInterval, concatenate
from sumformer.algebra.interval import Interval

ratio = st.floats(0, 1)
near = st.one_of(st.floats(-4, 4), st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1e-200, 1e200]))
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
sides = st.one_of(boxes(near), boxes(near), boxes(reals), st.just((0.0, 0.0)))


def rectangle(re, im):
    return ComplexInterval(Interval(*re), Interval(*im))


def grid(re, im, t):
    return [acb(x, y) for x in points(*re, t) for y in points(*im, t)]


@pytest.mark.parametrize("name", OPERATIONS)
@settings(max_examples=150, deadline=None)
@given(a=st.tuples(sides, sides), b=st.tuples(sides, sides), t=ratio)
def test_arithmetic_encloses(name, a, b, t):
    operation = OPERATIONS[name]
    value = operation(rectangle(*a), rectangle(*b))
    zero_inside = b[0][0] <= 0 <= b[0][1] and b[1][0] <= 0 <= b[1][1]
    assert value.defined == (name != "/" or not zero_inside)
    for w in grid(*a, t):
        for z in grid(*b, 1 - t):
            if not (name == "/" and z == 0):
                assert inside(value, operation(w, z)), (w, z)


@settings(max_examples=200, deadline=None)
@given(a=st.tuples(sides, sides), k=st.integers(-5, 8), t=ratio)
def test_powers_enclose(a, k, t):
    z = rectangle(*a)
    for w in grid(*a, t):
        assert inside(z.square(), w * w)
        if k >= 0 or w != 0:
            assert inside(z**k, w**k)


@settings(max_examples=100, deadline=None)
@given(a=st.tuples(sides, sides), t=ratio)
def test_abs_upper_bounds_the_modulus(a, t):
    z = rectangle(*a)
    for w in grid(*a, t):
        truth = (w.real**2 + w.imag**2).sqrt()
        assert not escapes(z.modulus().lo.item(), z.abs_upper().item(), truth)


def test_reciprocal_is_the_hull():
    rng = np.random.default_rng(0)
    corner = rng.uniform(-3, 3, (400, 2))
    size = rng.uniform(0, 2, (400, 2))
    z = ComplexInterval(*(Interval(corner[:, i], corner[:, i] + size[:, i]) for i in (0, 1)))
    value = z.reciprocal()
    x = np.linspace(z.re.lo, z.re.hi, 201)[:, None]
    y = np.linspace(z.im.lo, z.im.hi, 201)[None]
    with np.errstate(all="ignore"):
        image = 1 / (x + 1j * y)
    for part, exact in ((value.re, image.real), (value.im, image.imag)):
        observed = exact.max(axis=(0, 1)) - exact.min(axis=(0, 1))
        excess = (part.hi - part.lo)[value.defined] / observed[value.defined]
        assert excess.min() >= 0.999999
        assert np.median(excess) <= 1.0001
    # a rectangle that all but touches 0 has its extremum between the samples
    assert value.defined.sum() > 300


def test_reciprocal_reaches_to_the_ends_of_the_floats():
    for size in (5e-324, 1e-300, 1e300, 1.7e308):
        value = rectangle((size, size), (size, size)).reciprocal()
        assert value.defined
        assert inside(value, 1 / acb(size, size))
    ray = rectangle((1.0, math.inf), (-math.inf, math.inf)).reciprocal()
    assert ray.defined
    assert ray.re.lo == 0
    assert 1 <= ray.re.hi <= 1 + 1e-14
    assert 0.5 <= ray.im.hi <= 0.5 + 1e-14


def test_what_is_real_stays_exactly_real():
    x, y = ComplexInterval.from_real(Interval(-1.0, 2.0)), ComplexInterval.from_real(Interval(1.0, 3.0))
    for value in (x + y, x - y, x * y, x / y, x.square(), x**5, y**-3, -x, 2 * x, 1 / y, x.sum() if x.shape else x):
        assert value.is_real.all()
    assert (x**2).re.lo == 0
    assert (x**3).re.lo == pytest.approx(-1)
    unit = rectangle((0.0, 0.0), (1.0, 1.0))
    assert (unit * unit).is_real
    assert (1 / unit).re.is_zero


def test_undefined_entries_are_kept_and_reported():
    z = ComplexInterval(Interval([-1.0, 1.0], [1.0, 2.0]), Interval([-1.0, 1.0], [1.0, 2.0]))
    value = 1 / z
    assert value.defined.tolist() == [False, True]
    assert ((0 * value) ** 0).defined.tolist() == [False, True]
    assert value.abs_upper()[0] == math.inf


def test_arrays():
    z = ComplexInterval(Interval(np.zeros((4, 1, 2)), np.ones((4, 1, 2))), Interval.point(0.0))
    w = ComplexInterval.from_real(Interval.point(np.ones((3, 1))))
    assert concatenate([z, w]).shape == (4, 3, 3)
    assert z.sum().shape == (4, 1)
    assert z.hull(w).intersect(z).shape == (4, 3, 2)
    assert z.contains(0.5 + 0j).all()
    assert z.width().max() == 1.0
