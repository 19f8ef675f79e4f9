"""Nodes: widths, bounds, hashing, operators."""

import copy
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sumformer.errors import TargetError
from sumformer.targets import Binary, Cat, Const, Dot, Neg, Node, Norm2, Power, Reduce, Slice, Token, Unary, parse
from sumformer.targets.node import MAX_DEPTH, MAX_SIZE

x, y = Token("x", 2), Token("y", 2)


def test_widths_follow_the_spec():
    assert (x.width, x[0].width, x[0:2].width, Norm2(x).width, Dot(x, y).width) == (2, 1, 2, 1, 1)
    assert Cat((x, Const(Fraction(1)), y)).width == 5
    assert (x * x[0]).width == (x[1] * x).width == Reduce("mean", y).width == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: x + Cat((x, x)),
        lambda: Dot(x, x[0]),
        lambda: Slice(x, 0, 3),
        lambda: Slice(x, 1, 1),
        lambda: x[2],
        lambda: x[-3],
        lambda: x[0:2:1],
        lambda: Cat(()),
        lambda: Power(x, 65),
        lambda: Power(x, True),
        lambda: Power(x, 1.5),
        lambda: Unary("sinh", x),
        lambda: Token("z", 1),
        lambda: Token("x", 0),
        lambda: Token("x", 2.0),
        lambda: Const(1),
        lambda: Const(Fraction(1, 2**5000)),
        lambda: x / 0,
        lambda: Reduce("sum", x),
        lambda: Reduce("prod", y),
        lambda: Reduce("mean", Reduce("mean", y)),
        lambda: x + True,
        lambda: x + float("nan"),
        lambda: x * float("inf"),
        lambda: x * Decimal("Infinity"),
        lambda: x * Decimal("1e999999"),
        lambda: x + "1",
        lambda: list(x),
        lambda: bool(x),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(TargetError):
        make()


def test_a_reduction_without_y_suggests_total():
    with pytest.raises(TargetError, match=r"did you mean total\(…\)"):
        Reduce("sum", x)


def test_operators_build_what_the_parser_builds():
    assert 1 / (2 - x) * 3 + -(y[0] ** 2) == parse("1/(2 - x)*3 + -y[0]**2", 2, free_y=True)
    assert x * 0.1 == x * Fraction(1, 10) == x * Decimal("0.1") == x * np.float64(0.1) == parse("x*0.1", 2)
    assert np.float64(0.5) * x == parse("0.5*x", 2)
    assert abs(+x) == parse("abs(x)", 2)
    assert x[:] == x[0:2] == x[-2:]
    assert x[-1] == x[1]


def test_equal_trees_are_equal_and_hash_alike():
    a, b = parse("x + mean(exp(y))", 2), parse("x+mean( exp(y) )", 2)
    assert a == b
    assert hash(a) == hash(b)
    assert a != parse("x + mean(exp(y))", 3)
    assert a != parse("x - mean(exp(y))", 2)
    assert a != "x + mean(exp(y))"
    assert Cat((x, y)) != Cat((x, y, x))
    assert Power(x, 2) != Power(x, 3)


def test_free_names():
    assert x.free == {"x"}
    assert (x - y).free == {"x", "y"}
    assert Reduce("mean", x - y).free == {"x"}
    assert (y - Reduce("mean", y)).free == {"x", "y"}
    assert Const(Fraction(1)).free == frozenset()


def test_trees_are_immutable_and_copy_as_themselves():
    tree = parse("x + 1", 2)
    with pytest.raises((AttributeError, TypeError)):
        tree.width = 3
    with pytest.raises(AttributeError):
        tree.op = "-"
    assert copy.copy(tree) is tree
    assert copy.deepcopy(tree) is tree
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert "Binary(+) width 2, 3 nodes" in repr(tree)


def test_depth_and_size_are_bounded():
    deep: Node = x
    for _ in range(MAX_DEPTH - 1):
        deep = Neg(deep)
    assert deep.depth == MAX_DEPTH
    assert pickle.loads(pickle.dumps(deep)) == deep
    with pytest.raises(TargetError, match="deeper"):
        Neg(deep)
    wide: Node = x
    while 2 * wide.size + 1 <= MAX_SIZE:
        wide = Binary("+", wide, wide)
    with pytest.raises(TargetError, match="nodes"):
        Binary("+", wide, wide)
