"""Walks: order, reductions, rebuilding, substitution without capture."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sumformer.errors import TargetError
from sumformer.targets import (
    Binary,
    Const,
    Neg,
    Reduce,
    Token,
    as_node,
    normalise,
    parse,
    postorder,
    rebuild,
    reductions,
    substitute,
    transform,
)

from .random_trees import random_tree

x, y = Token("x", 1), Token("y", 1)


@given(st.integers(0, 2**32))
def test_postorder_has_children_first_and_each_once(seed):
    tree = random_tree(Random(seed), 2, 5)
    order = postorder(tree)
    at = {part: i for i, part in enumerate(order)}
    assert len(at) == len(order)
    assert order[-1] == tree
    assert all(at[child] < at[part] for part in order for child in part.children)


@given(st.integers(0, 2**32))
def test_rebuilding_a_normal_tree_changes_nothing(seed):
    tree = random_tree(Random(seed), 2, 5)
    assert transform(tree, rebuild) == tree
    assert substitute(tree, {}) == tree


def test_reductions_come_inner_first_and_once():
    tree = parse("sum(y) + mean((y - mean(y))**2)/mean(y)", 1)
    assert [r.kind for r in reductions(tree)] == ["sum", "mean", "mean"]
    assert reductions(tree)[1] == Reduce("mean", y)


def test_free_names():
    assert parse("mean(y)", 1).free == {"x"}
    assert parse("exp(y)", 1, free_y=True).free == {"y"}
    assert parse("2", 1).free == frozenset()


def test_normalise_folds():
    assert normalise(Neg(Binary("+", Const(as_node(1).value), as_node(2)))) == as_node(-3)


def test_substitution_respects_binding():
    tree = parse("y + mean(y*x)", 1, free_y=True)
    assert substitute(tree, {y: as_node(3)}) == parse("3 + mean(y*x)", 1)
    assert substitute(tree, {x: x + 1}) == parse("y + mean(y*(x + 1))", 1, free_y=True)
    with pytest.raises(TargetError, match="captured"):
        substitute(tree, {x: y})
    inner = parse("mean(y*x)", 1)
    assert substitute(tree, {inner: as_node(2)}) == parse("y + 2", 1, free_y=True)


def test_rebuild_checks_the_number_of_children():
    with pytest.raises(TargetError, match="children"):
        rebuild(parse("x + 1", 1), (x,))


def test_deep_trees_are_walked_without_recursion_errors():
    deep = parse("x" + " + x" * 300, 1)
    assert len(postorder(deep)) == 301
    assert substitute(deep, {x: as_node(1)}) == as_node(301)
    nested = parse("mean(y + " * 100 + "mean(y)" + ")" * 100, 1)
    assert len(reductions(nested)) == 101
    assert substitute(nested, {x: x + 1}) == nested
