"""A product of one thing with itself is a square, and signs of products are known: what is built so is verified."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sumformer.certificates.checker import check
from sumformer.certificates.checker.arithmetic import Arithmetic
from sumformer.certificates.checker.compiled.element import between
from sumformer.certificates.checker.compiled.forms import Forms
from sumformer.certificates.checker.compiled.jets import jet
from sumformer.certificates.checker.interval import Interval, IntervalOperations
from sumformer.certificates.checker.tracked import Tracked, TrackedOperations
from sumformer.certificates.checker.tree_values import components
from sumformer.targets.parser import parse
from sumformer.targets.tree import Token
from sumformer.theorems.construction import construct

OPS = IntervalOperations()
SQUARES: list[tuple[str, dict[str, Any]]] = [
    ("sqrt(mean(y*y))", {"n": 3}),
    ("sqrt(dot(x, x))", {"n": 2, "d": 2}),
    ("sqrt(2*x*x)", {"n": 2}),
    ("sqrt(mean(y*y*y*y))", {"n": 3}),
    ("mean(log(0.5 + dot(x - y, x - y)))", {"n": 3, "d": 2}),
    ("log(1 + x*x)", {"n": 2, "box": "-2:2", "architecture": "transformer"}),
    ("1/(0.5 + x*x)", {"n": 2, "architecture": "transformer"}),
    ("1/(0.5 + mean(y)*mean(y))", {"n": 3, "architecture": "performer"}),
    ("sqrt(dot(x, x))", {"n": 2, "d": 2, "architecture": "linformer"}),
    ("1/(0.3 + 2*mean(tanh(x - y))*mean(tanh(x - y))) - 1.5", {"n": 3, "box": "-2:-1", "architecture": "transformer"}),
    ("sqrt((1/(0.3 + 2*mean(y)*mean(y)))**2)", {"n": 3, "architecture": "transformer"}),
]


@pytest.mark.parametrize(("source", "asked"), SQUARES)
def test_squares_written_as_products_verify(tmp_path, source, asked):
    construct(source, 0.4, **({"box": "-1:1"} | asked)).save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures


def on(v: Interval):
    """x and y in one interval, which is one object."""
    return lambda part: [v] * part.width if isinstance(part, Token) else None


@pytest.mark.parametrize(
    ("source", "least"),
    [
        ("x*x", 0.0),
        ("dot(x, x)", 0.0),
        ("dot(x - y, x - y)", 0.0),
        ("(x + y)*(x + y)", 0.0),
        ("x*y", -1.0),
        ("dot(x, y)", -2.0),
        ("(x + y)*(y + x)", -4.0),
        ("x[0]*x[1]", -1.0),
    ],
)
def test_equal_trees_are_one_number_and_equal_enclosures_are_not(source, least):
    """At x = 1, y = −1 the products of different things are negative, though all lie in one interval."""
    found = components(parse(source, 2, free_y=True), OPS, on(Interval(np.asarray(-1.0), np.asarray(1.0))))
    assert all(least - 1e-14 <= float(v.lo) <= least for v in found)


def test_the_other_arithmetics_know_squares_too():
    ends = Interval(np.array([-1.0]), np.array([1.0]))
    assert float(jet(parse("x*x", 1), ends).value.lo[0]) == 0.0
    forms = Forms(1)
    squared = components(parse("x*x", 1), forms, lambda p: [forms.chebyshev((1,))] if isinstance(p, Token) else None)
    assert float(squared[0].range.lo) == 0.0
    assert squared[0].terms == forms.power(forms.chebyshev((1,)), 2).terms


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("v", [0.0, 1e-30, 0.7, 3.0])
def test_a_square_rounds_and_underflows_once(name, v):
    """As the product does that it is."""
    ops = TrackedOperations(Arithmetic.named(name))
    t = Tracked(between(v, v), np.asarray(1e-9))
    assert float(ops.power(t, 2).error) == pytest.approx(float(ops.mul(t, t).error), rel=1e-15, abs=0)


UP, DOWN = (0.0, 2.0), (-2.0, 0.0)


@pytest.mark.parametrize(
    ("a", "b", "sign"), [(UP, UP, 1), (DOWN, DOWN, 1), (UP, DOWN, -1), (DOWN, UP, -1), (UP, (-1.0, 1.0), 0)]
)
def test_a_product_has_the_sign_of_its_factors(a, b, sign):
    product = OPS.mul(between(*a), between(*b))
    assert (float(product.lo) >= 0, float(product.hi) <= 0) == (sign > 0, sign < 0)
    if sign:
        divisor = between(b[0] + 1, b[1] + 1) if b == UP else between(b[0] - 1, b[1] - 1)
        quotient = OPS.div(between(*a), divisor)
        assert (float(quotient.lo) >= 0, float(quotient.hi) <= 0) == (sign > 0, sign < 0)
