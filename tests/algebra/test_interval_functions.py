from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from interval_oracle import FUNCTIONS, boxes, escapes, inside, points

from sumformer.algebra import interval_functions as functions
from sumformer.algebra.interval import Interval

ratio = st.floats(0, 1)
RANGES = {"exp": (0, math.inf), "sigmoid": (0, 1), "tanh": (-1, 1), "sin": (-1, 1), "cos": (-1, 1)}


def in_domain(name, x):
    return {"log": x > 0, "sqrt": x >= 0}.get(name, True)


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=250, deadline=None)
@given(a=boxes(), t=ratio)
def test_functions_enclose(name, a, t):
    value = functions.UNARY[name](Interval(*a))
    assert value.defined == in_domain(name, a[0])
    for x in points(*a, t):
        if in_domain(name, x):
            assert inside(value, FUNCTIONS[name](arb(x))), x
    if name in RANGES:
        least, most = RANGES[name]
        assert value.lo >= least
        assert value.hi <= most


@settings(max_examples=100, deadline=None)
@given(a=boxes(), b=boxes(), t=ratio)
def test_sinh_cosh_hypot_enclose(a, b, t):
    x, y = Interval(*a), Interval(*b)
    for p in points(*a, t):
        assert inside(functions.sinh(x), arb(p).sinh())
        assert inside(functions.cosh(x), arb(p).cosh())
        for q in points(*b, t):
            assert inside(functions.hypot(x, y), (arb(p) ** 2 + arb(q) ** 2).sqrt())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_points_stay_narrow(name):
    x = np.random.default_rng(0).uniform(0.1, 3.0, 1000)
    value = functions.UNARY[name](Interval.point(x))
    assert np.all(value.hi - value.lo <= 36 * np.spacing(np.abs(value.lo)))


@pytest.mark.parametrize(
    ("name", "at", "truth"), [("exp", 0, 1), ("log", 1, 0), ("sin", 0, 0), ("cos", 0, 1), ("tanh", 0, 0)]
)
def test_values_known_exactly(name, at, truth):
    for x in (float(at), -float(at)) if at == 0 else (float(at),):
        value = functions.UNARY[name](Interval.point(x))
        assert value.lo == value.hi == truth


@pytest.mark.parametrize("k", range(-6, 7))
def test_waves_find_the_extremum_inside(k):
    for eps in (1e-9, 0.1, 1.0):
        crest = functions.cos(Interval(2 * k * math.pi - eps, 2 * k * math.pi + eps / 2))
        assert crest.hi == 1
        assert crest.lo == pytest.approx(math.cos(eps))
        trough = functions.sin(Interval((2 * k - 0.5) * math.pi - eps, (2 * k - 0.5) * math.pi + eps))
        assert trough.lo == -1
        assert trough.hi == pytest.approx(-math.cos(eps))
    between = functions.sin(Interval(k * math.pi - 1, k * math.pi + 1))
    assert (between.lo, between.hi) == pytest.approx((-math.sin(1), math.sin(1)))


def test_waves_far_out_or_wide():
    for wild in (Interval.point(2.0**31), Interval(0.0, 7.0), Interval(-math.inf, math.inf)):
        value = functions.sin(wild)
        assert (value.lo, value.hi) == (-1, 1)


def test_edges_of_the_floats():
    assert functions.exp(Interval.point(-1e308)).lo == 0
    assert functions.exp(Interval.point(1e308)).hi == math.inf
    assert functions.exp(Interval.point(1e308)).lo < math.inf
    assert functions.exp(Interval(-math.inf, math.inf)).lo == 0
    assert functions.sqrt(Interval.point(-0.0)).is_zero
    assert not functions.sqrt(Interval.point(-5e-324)).defined
    assert functions.sqrt(Interval(0.0, math.inf)).hi == math.inf
    assert not functions.log(Interval(0.0, 1.0)).defined
    assert functions.log(Interval.point(5e-324)).defined
    assert functions.sigmoid(Interval.point(-1000.0)).lo == 0
    assert functions.sigmoid(Interval.point(-700.0)).lo > 0
    assert functions.sigmoid(Interval(-math.inf, math.inf)).hi == 1


def test_softmax_on_wide_logits_is_sound():
    """On this box a known interval softmax answers 0.00063; the supremum is 1 / (1 + e^{-100})."""
    a, b = Interval(-100.0, 0.0), Interval(-100.0, -35.0)
    numerator = functions.exp(a)
    value = numerator / (numerator + functions.exp(b))
    assert value.defined
    supremum = 1 / (1 + arb(-100).exp())
    infimum = arb(-100).exp() / (arb(-100).exp() + arb(-35).exp())
    for truth in (supremum, infimum):
        assert not escapes(value.lo.item(), value.hi.item(), truth)
    tight = functions.sigmoid(a - b)
    assert not escapes(tight.lo.item(), tight.hi.item(), supremum)
    assert tight.hi <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_fuzz(name):
    rng = np.random.default_rng(7)
    for scale in (1e-300, 1e-8, 1.0, 30.0, 700.0, 1e9):
        ends = np.sort(rng.normal(0, scale, (15_000, 2)), axis=1)
        ends[::3, 1] = ends[::3, 0] + np.abs(ends[::3, 0]) * 1e-12
        value = functions.UNARY[name](Interval(ends[:, 0], ends[:, 1]))
        for (lo, hi), t, low, high in zip(ends.tolist(), rng.random(15_000), value.lo, value.hi, strict=True):
            for x in points(lo, hi, t):
                if in_domain(name, x):
                    assert not escapes(low, high, FUNCTIONS[name](arb(x))), (lo, hi, x)
