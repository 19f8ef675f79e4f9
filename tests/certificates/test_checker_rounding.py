"""The checker's rounding rules against arithmetic that is coarse enough to see every term: numpy's float16."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sumformer.certificates.checker import check
from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.features import combine, table_error
from sumformer.certificates.checker.interval import Interval
from sumformer.certificates.checker.tracked import Tracked, TrackedOperations
from sumformer.theorems.construction import construct

HALF = Arithmetic(2.0**-11, 0.0, 65504.0, 11)  # nothing here underflows
OPS = TrackedOperations(HALF)
number = st.floats(0.05, 8).map(lambda v: float(np.float16(v)))
share = st.sampled_from([-1.0, 1.0, 0.3, 0.0])


def tracked(v: float, e: float) -> Tracked:
    return Tracked(Interval(np.array(v), np.array(v)), np.array(e))


def near(v: float, e: float, s: float) -> np.float16:
    """A float16 within e of v, at the share s of the way where there is one."""
    found = np.float16(v + s * e)
    return found if abs(Fraction(float(found)) - Fraction(v)) <= Fraction(e) else np.float16(v)


@settings(deadline=None, max_examples=600)
@given(st.sampled_from("+-*/"), number, number, st.floats(0, 0.8), st.floats(0, 0.8), share, share, st.booleans())
def test_operations(op, a, b, ra, rb, sa, sb, negative):
    a = -a if negative else a
    ea, eb = abs(a) * ra, b * rb
    x, y = near(a, ea, sa), near(b, eb, sb)
    got = {"+": x + y, "-": x - y, "*": x * y, "/": x / y}[op]
    A, B = Fraction(a), Fraction(b)
    exact = {"+": A + B, "-": A - B, "*": A * B, "/": A / B}[op]
    name = {"+": "add", "-": "sub", "*": "mul", "/": "div"}[op]
    bound = float(getattr(OPS, name)(tracked(a, ea), tracked(b, eb)).error)
    assert abs(Fraction(float(got)) - exact) <= Fraction(bound) * (1 + Fraction(1, 10**9))


@settings(deadline=None, max_examples=300)
@given(st.floats(0.3, 1.5), st.integers(2, 9), st.floats(0, 0.3), share)
def test_powers(v, k, r, s):
    v = float(np.float16(v))
    x = got = near(v, v * r, s)
    for _ in range(k - 1):
        got = got * x
    bound = float(OPS.power(tracked(v, v * r), k).error)
    assert abs(Fraction(float(got)) - Fraction(v) ** k) <= Fraction(bound)


def test_powers_lose_nearly_what_is_said():
    """Over all x in [1, 1.2] the worst of nine factors is more than a third of k − 1 roundings."""
    x = np.arange(1024, 1229).astype(np.float64) / 1024
    got = x.astype(np.float16)
    for _ in range(8):
        got = got * x.astype(np.float16)
    worst = max(abs(Fraction(float(g)) - Fraction(float(v)) ** 9) for g, v in zip(got, x, strict=True))
    wide = Tracked(Interval(np.array(1.0), np.array(1.2)), np.array(0.0))
    assert worst <= Fraction(float(OPS.power(wide, 9).error)) <= 6 * worst


def test_a_square_that_is_off_by_as_much_as_it_is():
    """(v + e)² − v² = 2 v e + e²: at v = e three times e², no more."""
    assert float(OPS.power(tracked(1.0, 1.0), 2).error) <= 3 + 8 * 2.0**-11
    assert float(OPS.power(tracked(0.0, 1.0), 3).error) <= 1 + 8 * 2.0**-11


@pytest.mark.parametrize("source", ["norm2(mean(sigmoid(x-y)))", "norm2(mean(sin(2*(x-y))))"])
def test_squares_of_coarse_values_verify(source, tmp_path):
    construct(source, 1.0, d=1).save(tmp_path)
    assert check(tmp_path).verified, check(tmp_path).failures


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "sigmoid": lambda v: 1 / (1 + math.exp(-v)),
    "abs": abs,
}


@pytest.mark.parametrize("fn", FUNCTIONS)
def test_functions(fn):
    """Of all arguments within e of v, rounded to float16: e is counted, which moves more than rounding does."""
    f, seen = FUNCTIONS[fn], []
    for v in (0.0625, 0.5, 1.0, 1.5, 2.0):
        for e in (0.0, v / 64, v / 2):
            worst = max(abs(float(np.float16(f(v + e * k / 16))) - f(v)) for k in range(-16, 17))
            assert worst <= float(OPS.function(fn, tracked(v, e)).error)
            seen.append(worst > float(OPS.function(fn, tracked(v, 0.0)).error))
    assert any(seen)


@settings(deadline=None, max_examples=200)
@given(st.lists(number, min_size=1, max_size=8), st.floats(0, 0.5), share)
def test_norms(values, r, s):
    """Squares, sums and the root in float16, of components that are off."""
    total = np.float16(0)
    for v in values:
        x = near(v, v * r, s)
        total = total + x * x
    exact = math.sqrt(math.fsum(v * v for v in values))
    bound = float(OPS.norm([tracked(v, v * r) for v in values]).error)
    assert abs(float(np.sqrt(total)) - exact) <= bound * (1 + 1e-9)


@settings(deadline=None, max_examples=200)
@given(st.lists(number, min_size=2, max_size=8))
def test_totals(values):
    got = np.float16(0)
    for v in values:
        got = got + np.float16(v)
    bound = float(OPS.total([tracked(v, 0.0) for v in values]).error)
    assert abs(Fraction(float(got)) - sum(map(Fraction, values))) <= Fraction(bound)


@pytest.mark.parametrize("name", ["float64", "float32", "mixed"])
def test_the_arithmetics_are_those_of_torch(name):
    a = Arithmetic.named(name)
    inside = torch.finfo(torch.float32 if name == "float32" else torch.float64)
    assert (a.u, a.tiny) == (inside.eps / 2, inside.smallest_normal)
    assert 0.9 * inside.max < a.huge <= inside.max
    assert 2.0**-a.digits == a.u
    outside = torch.finfo(torch.float32)
    if name == "mixed":
        u, tiny, huge = a.output
        assert (u, tiny) == (outside.eps / 2, outside.smallest_normal)
        assert 0.9 * outside.max < huge <= outside.max
    else:
        assert a.output is None
    assert [a.count_roundings(n) for n in (2**a.digits, 2**a.digits + 1)] == [0, 1]


@pytest.mark.parametrize(("centre", "radius"), [(Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 3), Fraction(1, 7))])
def test_tables(centre, radius):
    """T_k of all float16 tokens of the box by the recurrence in float16, and no more than 20 times too much."""
    every = np.unique(np.linspace(float(centre - radius), float(centre + radius), 2000).astype(np.float16))
    z = [v for v in every if centre - radius <= Fraction(float(v)) <= centre + radius]
    t = np.clip((np.array(z) - np.float16(float(centre))) * np.float16(float(1 / radius)), -1, 1).astype(np.float16)
    exact_t = np.array([float((Fraction(float(v)) - centre) / radius) for v in z])
    rows, exact = [np.ones_like(t), t], [np.ones_like(exact_t), exact_t]
    for _ in range(2, 9):
        rows.append((np.float16(2) * t) * rows[-1] - rows[-2])
        exact.append(2 * exact_t * exact[-1] - exact[-2])
    bound = table_error(HALF, centre, radius, 8)
    for k, (row, wanted) in enumerate(zip(rows, exact, strict=True)):
        worst = float(np.abs(row.astype(np.float64) - wanted).max())
        assert worst <= bound[k] + 1e-12
        assert bound[k] <= 20 * worst + 1e-12


def test_combine():
    assert combine(0.5, 0.5, 0.5) == 1.5**3 - 1
