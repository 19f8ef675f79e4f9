"""The checker's own arithmetic: enclosures hold, equal forms mean equal functions, norms are bounds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sumformer.algebra.interval import Interval as BuiltInterval
from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.canonical import CanonicalForms
from sumformer.certificates.checker.cells import chebyshev
from sumformer.certificates.checker.chebyshev_grid import coefficients, sup_norm, values_at_nodes
from sumformer.certificates.checker.ellipse import Variables, maximum_on_ellipse
from sumformer.certificates.checker.interval import Interval, IntervalOperations, from_fraction
from sumformer.certificates.checker.rectangle import RectangleOperations, rectangle
from sumformer.certificates.checker.tracked import Tracked, TrackedOperations
from sumformer.certificates.checker.verification import Unproved
from sumformer.targets.parser import parse

OPS = IntervalOperations()
FUNCTIONS = ("exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "abs")
numbers = st.floats(-50, 50) | st.floats(-1, 1) | st.sampled_from([0.0, -0.0, 1.0, math.pi, 5e-324])


def between(lo: float, hi: float, share: float) -> float:
    return min(max(lo + share * (hi - lo), lo), hi)


def ball(fn: str, v: float) -> arb:
    x = arb(v)
    return 1 / (1 + (-x).exp()) if fn == "sigmoid" else abs(x) if fn == "abs" else getattr(x, fn)()


@given(numbers | st.floats(-1e5, 1e5, width=32), st.integers(2, 9))
@example(1e-200, 2)
@example(1e200, 2)
@example(1 + 2.0**-24, 2)
@example(2.0**-149, 8)
def test_powers_of_points_enclose_and_are_exact_where_short(v, k):
    """Both arithmetics, of the construction and of the checker."""
    exact, point = Fraction(v) ** k, np.asarray(v)
    with np.errstate(over="ignore"):
        both = OPS.power(Interval(point, point), k), BuiltInterval.point(v) ** k
    for found in both:
        lo, hi = float(found.lo), float(found.hi)
        assert lo == -math.inf or Fraction(lo) <= exact
        assert hi == math.inf or Fraction(hi) >= exact
        if k == 2 and Fraction(v).numerator.bit_length() < 25 and 1e-30 < abs(v) < 1e30:
            assert lo == hi == v * v


@given(st.sampled_from(FUNCTIONS), numbers, st.floats(0, 10), st.floats(0, 1))
def test_functions_enclose(fn, lo, width, share):
    hi = lo + width
    try:
        value = OPS.function(fn, Interval(np.array([lo]), np.array([hi])))
    except Unproved:
        assert fn in ("log", "sqrt")
        assert lo <= 0
        return
    exact = ball(fn, between(lo, hi, share))
    assert float(exact.upper()) >= value.lo[0]
    assert float(exact.lower()) <= value.hi[0]


@given(st.sampled_from("+-*/"), *[numbers] * 2, *[st.floats(0, 10)] * 2, *[st.floats(0, 1)] * 2)
def test_arithmetic_encloses(op, a, b, wa, wb, sa, sb):
    left, right = (Interval(np.array([v]), np.array([v + w])) for v, w in ((a, wa), (b, wb)))
    name = {"+": "add", "-": "sub", "*": "mul", "/": "div"}[op]
    x, y = Fraction(between(a, a + wa, sa)), Fraction(between(b, b + wb, sb))
    try:
        with np.errstate(all="ignore"):
            value = getattr(OPS, name)(left, right)
    except Unproved:
        assert b <= 0 <= b + wb
        return
    exact = {"+": x + y, "-": x - y, "*": x * y}[op] if op != "/" else x / y
    low, high = value.lo[0], value.hi[0]
    assert low == -math.inf or Fraction(float(low)) <= exact
    assert high == math.inf or exact <= Fraction(float(high))


@given(numbers, st.floats(0, 5), st.integers(-6, 9), st.floats(0, 1))
def test_powers_enclose(lo, width, k, share):
    with np.errstate(all="ignore"):
        try:
            value = OPS.power(Interval(np.array([lo]), np.array([lo + width])), k)
        except Unproved:
            return
    point = Fraction(between(lo, lo + width, share))
    if point or k >= 0:
        exact, low, high = point**k, float(value.lo.item()), float(value.hi.item())
        assert low == -math.inf or Fraction(low) <= exact
        assert high == math.inf or exact <= Fraction(high)


small = st.floats(-3, 3)


@given(
    st.sampled_from(FUNCTIONS[:-1]), small, small, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)
)
def test_complex_functions_enclose(fn, re, im, width, height, s, t):
    box = rectangle(*(Interval(np.array([v]), np.array([v + w])) for v, w in ((re, width), (im, height))))
    ops = RectangleOperations(1)
    with np.errstate(all="ignore"):
        value = ops.function(fn, box)
    z = acb(arb(between(re, re + width, s)), arb(between(im, im + height, t)))
    if ops.bad[0]:
        return
    exact = 1 / (1 + (-z).exp()) if fn == "sigmoid" else getattr(z, fn)()
    for part, enclosure in ((exact.real, value.re), (exact.imag, value.im), (abs(exact), value.modulus)):
        assert float(part.upper()) >= enclosure.lo[0]
        assert float(part.lower()) <= enclosure.hi[0]


@given(st.floats(0.01, 3), st.floats(0, 0.7), st.floats(0, 1), st.floats(0, 0.1))
def test_tanh_is_enclosed_alike_on_both_sides(re, im, width, height):
    """They were not, and honest certificates of nested tanh did not verify."""
    ops = RectangleOperations(2)
    ends = np.array([re, -re - width])
    box = rectangle(Interval(ends, ends + width), Interval(np.array([im, -im - height]), np.array([im + height, -im])))
    with np.errstate(all="ignore"):
        value = ops.function("tanh", box)
    right, left = value.modulus.hi
    assert abs(left - right) <= 1e-9 * right or ops.bad.all()


@pytest.mark.parametrize("fn", ["log", "sqrt"])
@pytest.mark.parametrize("re", [(-1.0, 1.0), (-2.0, -1.0), (0.0, 1.0)])
def test_the_cut_is_not_analytic(fn, re):
    ops = RectangleOperations(1)
    with np.errstate(all="ignore"):
        ops.function(
            fn, rectangle(Interval(*map(np.array, ([re[0]], [re[1]]))), Interval(*map(np.array, ([0.0], [1.0]))))
        )
    assert ops.bad[0]


@pytest.mark.parametrize("source", ["abs(x*y)", "norm(x - y)", "max(x, y)", "min(x, 2)", "1/(x - y)", "log(x - y)"])
def test_no_ellipse_where_not_analytic(source):
    half = Fraction(1, 2)
    variables = Variables((("x", 0, half, half), ("y", 0, half, half)), 1)
    with pytest.raises(Unproved), np.errstate(all="ignore"):
        maximum_on_ellipse(parse(source, 1, free_y=True), variables, 0, 1.25, 1e9)


@pytest.mark.parametrize(
    "source", ["exp(-4*norm2(x - y))", "sqrt((x - y)**2 + 0.25)**-3", "sigmoid((x - y)/0.5)", "cos(3*x + y)*exp(x*y)"]
)
@pytest.mark.parametrize("which", [0, 1])
def test_the_maximum_on_an_ellipse_is_one(source, which):
    """|K| at points of the ellipse, with the square of norm2 not conjugated."""
    half, rho = Fraction(1, 2), 1.5
    node = parse(source, 1, free_y=True)
    variables = Variables((("x", 0, half, half), ("y", 0, half, half)), 1)
    with np.errstate(all="ignore"):
        M = maximum_on_ellipse(node, variables, which, rho, 0.0)
    w = rho * np.exp(1j * np.linspace(0, 2 * np.pi, 200))
    t, s = ((w + 1 / w) / 2)[:, None], np.linspace(-1, 1, 41)[None, :]
    x, y = (0.5 + 0.5 * t, 0.5 + 0.5 * s) if which == 0 else (0.5 + 0.5 * s, 0.5 + 0.5 * t)
    known = {
        "exp(-4*norm2(x - y))": lambda: np.exp(-4 * (x - y) ** 2),
        "sqrt((x - y)**2 + 0.25)**-3": lambda: np.sqrt((x - y) ** 2 + 0.25) ** -3,
        "sigmoid((x - y)/0.5)": lambda: 1 / (1 + np.exp(-2 * (x - y))),
        "cos(3*x + y)*exp(x*y)": lambda: np.cos(3 * x + y) * np.exp(x * y),
    }
    sampled = np.abs(known[source]()).max()
    assert sampled <= M <= 1.5 * sampled


EQUAL = [
    ("exp(-4*norm2(x - y))", "exp(-4*norm2(x))*exp(8*dot(x, y))*exp(-4*norm2(y))"),
    ("(x[0] - y[0])**3", "x[0]**3 - 3*x[0]**2*y[0] + 3*x[0]*y[0]**2 - y[0]**3"),
    ("1/sqrt(1 + norm2(x - y))**3", "sqrt(norm2(y - x) + 1)**-3"),
    ("exp(x[0])**-2*exp(2*x[0])", "1"),
    ("y[0]/(2 + 2*x[0]*y[0])", "0.5*y[0]*(1 + y[0]*x[0])**-1"),
    ("sigmoid((x[0] - y[0])/0.1)", "sigmoid(10*x[0] - 10*y[0])"),
    ("(y[0] - mean(y)[0])**2", "y[0]**2 - 2*y[0]*mean(y)[0] + mean(y)[0]**2"),
    ("total(x*y)", "dot(y, x)"),
]
DIFFERENT = [
    ("exp(x[0])*exp(y[0])", "exp(x[0]*y[0])"),
    ("sqrt(x[0])", "x[0]"),
    ("sin(x[0])", "cos(x[0])"),
    ("1/(1 + x[0])", "1/(1 + 2*x[0])"),
    ("mean(y)[0]", "mean(y)[1]"),
    ("mean(y)[0]", "sum(y)[0]"),
    ("max(x[0], y[0])", "min(x[0], y[0])"),
    ("x[0]", "x[1]"),
    ("norm(x)", "norm2(x)"),
    ("x[0] + 1e-30", "x[0]"),
]


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_equal_functions_have_equal_forms(left, right):
    forms = CanonicalForms()
    a, b = (forms.of(parse(source, 2, free_y=True))[0] for source in (left, right))
    assert forms.sub(a, b) == {}


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_different_functions_have_different_forms(left, right):
    forms = CanonicalForms()
    a, b = (forms.of(parse(source, 2, free_y=True))[0] for source in (left, right))
    assert forms.sub(a, b) != {}


def test_expansions_are_bounded():
    with pytest.raises(Unproved):
        CanonicalForms().of(parse("(1 + x[0] + x[1] + y[0] + y[1] + sin(x[0]))**60", 2, free_y=True))


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(1, 3), st.integers(0, 2**31))
def test_the_sup_norm_is_a_bound(n, axes, seed):
    c = np.random.default_rng(seed).standard_normal((n,) * axes)
    value = c
    for _ in range(axes):
        value = np.tensordot(value, np.cos(np.arange(n)[:, None] * np.linspace(0, np.pi, 40)[None, :]), axes=([0], [0]))
    assert np.abs(value).max() <= sup_norm(c) <= np.abs(c).sum() * (1 + 1e-6)


def test_coefficients_invert_values_at_nodes():
    c = np.random.default_rng(0).standard_normal((7, 7))
    matrix = values_at_nodes(6, 7)
    found, error = coefficients(matrix.T @ c @ matrix)
    assert np.abs(found - c).max() <= error < 1e-12


@given(st.integers(0, 40), st.floats(-1, 1), st.floats(0, 0.3), st.floats(0, 1))
def test_chebyshev_polynomials_are_enclosed(k, lo, width, share):
    hi = min(1.0, lo + width)
    value = chebyshev(k, Interval(np.array([lo]), np.array([hi])))
    point = arb(between(lo, hi, share))
    exact = (k * point.acos()).cos()
    assert float(exact.upper()) >= value.lo[0]
    assert float(exact.lower()) <= value.hi[0]


@settings(deadline=None)
@given(st.sampled_from(FUNCTIONS), st.floats(0.1, 3), st.floats(0, 0.05), st.floats(-1, 1))
def test_tracked_functions_bound_float32(fn, v, error, share):
    """fl(g(v + e)) in float32 stays within the tracked error of g(v)."""
    ops = TrackedOperations(Arithmetic.named("float32"))
    tracked = ops.function(fn, Tracked(Interval(np.array([v]), np.array([v])), np.array([error])))
    moved = np.float32(v + share * error * 0.999)
    if abs(float(moved) - v) <= error:
        found = np.float32(float(ball(fn, float(moved)).mid()))
        assert abs(float(found) - float(ball(fn, v).mid())) <= tracked.error[0]


@given(st.fractions(-1000, 1000))
def test_constants_are_off_by_what_is_said(value):
    for name, stored in (("float32", float(np.float32(float(value)))), ("float64", float(value))):
        error = Arithmetic.named(name).constant_error(value)
        assert abs(Fraction(stored) - value) <= Fraction(error) * (1 + Fraction(1, 10**9))
    assert from_fraction(value).lo <= float(value) <= from_fraction(value).hi


@given(*[small] * 4, *[st.floats(0, 2)] * 4, *[st.floats(0, 1)] * 4)
@example(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.5, 0.5, 0.0, 1.0)
@example(1.0, 0.0, 1e-120, 1e-120, 1.0, 0.0, 1e-120, 0.0, 0.5, 0.5, 0.0, 1.0)
def test_complex_quotients_enclose(a, b, c, d, wa, wb, wc, wd, sa, sb, sc, sd):
    above, below = (
        rectangle(*(Interval(np.array([v]), np.array([v + w])) for v, w in parts))
        for parts in (((a, wa), (b, wb)), ((c, wc), (d, wd)))
    )
    ops = RectangleOperations(1)
    with np.errstate(all="ignore"):
        value = ops.div(above, below)
    if ops.bad[0]:
        return
    exact = acb(between(a, a + wa, sa), between(b, b + wb, sb)) / acb(between(c, c + wc, sc), between(d, d + wd, sd))
    for part, enclosure in ((exact.real, value.re), (exact.imag, value.im), (abs(exact), value.modulus)):
        assert not part.is_finite() or float(part.upper()) >= enclosure.lo[0]
        assert not part.is_finite() or float(part.lower()) <= enclosure.hi[0]


@pytest.mark.parametrize("sign", [1, -1])
def test_inverses_are_as_narrow_as_they_can_be(sign):
    """Over 1 … 2 by 0 … 3: Re falls with both, −Im is largest where both sides are equal."""
    side = Interval(np.array([1.0]), np.array([2.0]))
    box = rectangle(side if sign > 0 else OPS.neg(side), Interval(np.array([0.0]), np.array([3.0])))
    value = RectangleOperations(1).div(rectangle(from_fraction(Fraction(1)), from_fraction(Fraction(0))), box)
    re = value.re if sign > 0 else OPS.neg(value.re)
    assert (re.lo[0], re.hi[0]) == (pytest.approx(1 / 10), pytest.approx(1.0))
    assert (value.im.lo[0], value.im.hi[0]) == (pytest.approx(-1 / 2), pytest.approx(0.0, abs=1e-15))
