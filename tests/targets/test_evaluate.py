"""The generic evaluator: any arithmetic, each sub-tree once, clear errors."""

from fractions import Fraction

import pytest

from sumformer.errors import TargetError
from sumformer.targets import Environment, Reduce, evaluate, parse


class Exact:
    """Rational vectors; counts the multiplications."""

    def __init__(self):
        self.products = 0

    def const(self, value):
        return [value]

    def _pair(self, a, b, op):
        width = max(len(a), len(b))
        a, b = (v * width if len(v) == 1 else v for v in (a, b))
        return [op(p, q) for p, q in zip(a, b, strict=True)]

    def add(self, a, b):
        return self._pair(a, b, lambda p, q: p + q)

    def sub(self, a, b):
        return self._pair(a, b, lambda p, q: p - q)

    def mul(self, a, b):
        self.products += 1
        return self._pair(a, b, lambda p, q: p * q)

    def div(self, a, b):
        return self._pair(a, b, lambda p, q: p / q)

    def neg(self, v):
        return [-t for t in v]

    def power(self, v, k):
        return [t**k for t in v]

    def unary(self, fn, v):
        assert fn == "abs"
        return [abs(t) for t in v]

    def extremum(self, op, a, b):
        return self._pair(a, b, min if op == "min" else max)

    def cat(self, values):
        return [t for v in values for t in v]

    def slice(self, v, start, stop):
        return v[start:stop]

    def dot(self, a, b):
        return [sum(self._pair(a, b, lambda p, q: p * q))]

    def norm2(self, v):
        return [sum(t * t for t in v)]

    def norm(self, v):
        raise NotImplementedError

    def total(self, v):
        return [sum(v)]


X = [Fraction(1, 3), Fraction(-2)]


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("x + 1/3", [Fraction(2, 3), Fraction(-5, 3)]),
        ("-x*2 - x/2", [Fraction(-5, 6), Fraction(5)]),
        ("x**-2", [Fraction(9), Fraction(1, 4)]),
        ("cat(x[1], abs(x), max(x, 0), min(x[0], 1))", [-2, Fraction(1, 3), 2, Fraction(1, 3), 0, Fraction(1, 3)]),
        ("dot(x, x) - norm2(x) + total(x)", [Fraction(-5, 3)]),
    ],
)
def test_every_operation(source, value):
    assert evaluate(parse(source, 2), Exact(), Environment(x=X)) == value


def test_equal_sub_trees_are_evaluated_once():
    ops = Exact()
    evaluate(parse("(x*x + 1)*(x*x + 1) - (x*x + 1)*(x*x + 1)", 2), ops, Environment(x=X))
    assert ops.products == 2


def test_reductions_are_left_to_the_environment():
    seen: list[Reduce] = []

    def reduce(node):
        seen.append(node)
        return [Fraction(7)]

    tree = parse("x*mean(y) + mean(y) + sum(exp(y))", 2)
    assert evaluate(tree, Exact(), Environment(x=X, reduce=reduce)) == [7 * x + 14 for x in X]
    assert [node.kind for node in seen] == ["mean", "sum"]
    assert evaluate(parse("y - x", 2, free_y=True), Exact(), Environment(x=X, y=X)) == [0, 0]


@pytest.mark.parametrize("source", ["x", "y", "mean(y)"])
def test_a_missing_value_is_named(source):
    with pytest.raises(TargetError, match="no value for"):
        evaluate(parse(source, 1, free_y=True), Exact(), Environment())
