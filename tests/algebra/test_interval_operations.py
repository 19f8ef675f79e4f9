from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from interval_oracle import escapes

from sumformer.algebra.complex_interval import ComplexInterval
from sumformer.algebra.interval import Interval
from sumformer.algebra.interval_operations import ComplexIntervalOperations, IntervalOperations

REAL, COMPLEX = IntervalOperations(), ComplexIntervalOperations()


def box(width=3, batch=5):
    lo = np.random.default_rng(0).uniform(0.1, 1, (batch, width))
    return Interval(lo, lo + 0.25)


def attention(ops, x, y):
    """A target-like expression that touches every method on real arguments."""
    half = ops.const(Fraction(1, 2))
    weight = ops.unary("exp", ops.neg(ops.norm2(ops.sub(x, y))))
    ratio = ops.div(ops.mul(weight, ops.dot(x, y)), ops.add(weight, half))
    parts = [ops.power(ops.slice(x, 0, 2), -2), ratio, ops.total(y), ops.norm(x), ops.extremum("max", ratio, half)]
    return ops.unary("tanh", ops.cat([ops.unary("abs", part) for part in parts]))


def test_both_adapters_agree_on_real_boxes():
    x, y = box(), box()
    real = attention(REAL, x, y)
    value = attention(COMPLEX, ComplexInterval.from_real(x), ComplexInterval.from_real(y))
    assert real.shape == value.shape == (5, 6)
    assert real.defined.all()
    assert value.is_real.all()
    np.testing.assert_allclose(value.re.lo, real.lo, rtol=1e-13)
    np.testing.assert_allclose(value.re.hi, real.hi, rtol=1e-13)


def test_the_values_at_points_lie_inside():
    x, y = box(), box()
    wide = attention(REAL, x, y)
    inner = attention(REAL, Interval.point(x.mid()), Interval.point(y.lo))
    assert np.all(wide.lo <= inner.lo)
    assert np.all(inner.hi <= wide.hi)


@pytest.mark.parametrize("fn", ["exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "abs"])
def test_every_function_has_its_name_in_both(fn):
    x = box()
    value = COMPLEX.unary(fn, ComplexInterval.from_real(x))
    np.testing.assert_array_equal(value.re.hi, REAL.unary(fn, x).hi) if fn not in ("exp", "sin", "cos") else None
    assert value.is_real.all()


def test_the_same_object_twice_is_a_square():
    x, twin = Interval([[-1.0, -1.0]], [[2.0, 2.0]]), Interval([[-1.0, -1.0]], [[2.0, 2.0]])
    assert REAL.mul(x, x).lo.tolist() == [[0.0, 0.0]]
    assert REAL.mul(x, twin).lo[0, 0] == pytest.approx(-2.0)
    assert REAL.dot(x, x).lo.tolist() == [[0.0]]
    assert REAL.norm(x).lo.tolist() == [[0.0]]
    assert REAL.norm(x[..., :1]).hi.tolist() == [[2.0]]
    z = ComplexInterval.from_real(x)
    assert COMPLEX.mul(z, z).re.lo.tolist() == [[0.0, 0.0]]


def test_complex_norm2_and_dot_do_not_conjugate():
    z = ComplexInterval(Interval.point([1.0, 0.0]), Interval.point([0.0, 1.0]))
    assert COMPLEX.norm2(z).contains(0j).all()
    assert COMPLEX.norm2(z).abs_upper() < 1e-15
    assert COMPLEX.dot(z, ComplexInterval(z.re, z.im)).abs_upper() < 1e-15
    assert not COMPLEX.norm(z).defined.any()
    assert COMPLEX.norm(z[..., :1]).re.hi == 1.0
    assert not COMPLEX.extremum("min", z, z).defined[1]


def test_softmax_box():
    logits = [Interval([-100.0], [0.0]), Interval([-100.0], [-35.0])]
    weights = [REAL.unary("exp", logit) for logit in logits]
    value = REAL.div(weights[0], REAL.add(*weights))
    assert value.defined.all()
    assert not escapes(value.lo.item(), value.hi.item(), 1 / (1 + arb(-100).exp()))


def test_constants_have_width_one_and_powers_of_any_sign_work():
    third = REAL.const(Fraction(1, 3))
    assert third.shape == (1,)
    assert REAL.power(third, 0).hi == 1.0
    assert REAL.power(third, -2).contains(9.0).all()
    assert COMPLEX.power(COMPLEX.const(Fraction(-3)), -3).contains(-1 / 27).all()
    assert COMPLEX.cat([COMPLEX.const(Fraction(1)), COMPLEX.const(Fraction(2))]).shape == (2,)
    assert math.isinf(COMPLEX.div(third_complex(), COMPLEX.const(Fraction(0))).abs_upper().item())


def third_complex():
    return COMPLEX.const(Fraction(1, 3))
