"""An expansion is the same function: values at random points, and the shape the grouping promises."""

import math
import random
from fractions import Fraction

import pytest
from tests.theorems.values import number

from sumformer.errors import RefusedError
from sumformer.targets import parse
from sumformer.targets.domain import Box
from sumformer.theorems.alberti_2023.components import component, coordinates
from sumformer.theorems.alberti_2023.expansion import Centred, Expander, additive_terms, connected

SOURCES = [
    "x[0]*(y[0] - x[1])**3",
    "norm2(x - y)*dot(x, y)",
    "exp(-4*norm2(x - y))*y[0]",
    "exp(2*dot(x, y) + x[0] - 3*y[1])/(1 + x[0]**2)",
    "(y[0] - x[0])/sqrt(norm2(x - y) + 0.25)**3",
    "(x[0]*y[0])**2/(x[1] + 3)**2",
    "exp(x[0])**2*exp(y[0]) - 1/3",
    "sigmoid((x[0] - y[0])/0.1)*cos(y[1])",
    "total(x*y)**2 - 7",
]


@pytest.mark.parametrize("grouping", ["split", "joint"])
@pytest.mark.parametrize("source", SOURCES)
def test_an_expansion_has_the_value_of_its_expression(source, grouping):
    box = Box.parse("0:1,-1:2", 2)
    expander = Expander(box, grouping)
    node = component(parse(source, 2, free_y=True), 0)
    expansion = expander.expand(node)
    generator = random.Random(source)
    for _ in range(5):
        x, y = ([generator.uniform(0, 1), generator.uniform(-1, 2)] for _ in range(2))
        got = 0.0
        for monomial, coefficient in expansion.items():
            term = float(coefficient)
            for atom, e in monomial:
                if isinstance(atom, Centred):
                    c = atom.index
                    value = ((x if atom.name == "x" else y)[c] - float(box.centre[c])) / float(box.radius[c])
                else:
                    value = number(atom, x, y)
                term *= value**e
            got += term
        assert got == pytest.approx(number(node, x, y), rel=1e-11, abs=1e-11)
        assert number(expander.node(expansion), x, y) == pytest.approx(number(node, x, y), rel=1e-10, abs=1e-10)


def test_split_frees_the_kernel_of_pure_parts():
    expansion = Expander(Box.unit(1), "split").expand(component(parse("exp(-4*(x - y)**2)", 1, free_y=True), 0))
    ((monomial, coefficient),) = expansion.items()
    sides = sorted(tuple(sorted(atom.free)) for atom, _ in monomial)
    assert coefficient == 1
    assert sides == [("x",), ("x", "y"), ("y",)]


def test_joint_keeps_one_kernel_per_coordinate():
    expansion = Expander(Box.unit(3), "joint").expand(component(parse("exp(-norm2(x - y))", 3, free_y=True), 0))
    ((monomial, _),) = expansion.items()
    assert sorted(sorted(coordinates(atom)) for atom, _ in monomial) == [[0], [1], [2]]


def test_additive_terms_distribute_constants():
    node = component(parse("-(2*(x - y)**2 - x)/4", 1, free_y=True), 0)
    x, y = [0.3], [0.8]
    terms = list(additive_terms(node))
    assert len(terms) == 2
    assert math.fsum(number(t, x, y) for t in terms) == pytest.approx(number(node, x, y))


def test_connected_joins_through_chains():
    a, b, c = (parse(s, 3, free_y=True) for s in ("x[0]*y[1]", "x[1]*y[2]", "x[0]"))
    assert len(connected([a, c, b], coordinates)) == 1
    assert len(connected([parse("x[0]", 3), parse("x[1]", 3)], coordinates)) == 2


def test_an_explosion_is_refused():
    node = component(parse("(1 + x[0] + x[1] + y[0] + y[1] + x[2] + y[2])**20", 3, free_y=True), 0)
    with pytest.raises(RefusedError, match="too many terms"):
        Expander(Box.unit(3), "split").expand(node)


def test_centred_coordinates_are_exact():
    expansion = Expander(Box.parse("0:1/3", 1), "split").expand(component(parse("x", 1), 0))
    assert set(expansion.values()) == {Fraction(1, 6)}
