"""Reductions taken apart by the coordinates that they read: the same numbers, fewer coordinates each."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.targets.random_trees import random_tree

from sumformer.targets import Reduce, parse, reductions, target, to_source
from sumformer.targets.coordinatewise import components, coordinatewise, families, on_coordinates, read


@pytest.mark.parametrize(
    ("source", "d", "apart", "coordinates"),  # seen of y, and own of x
    [
        ("max(y)", 3, "cat(max(y[0]), max(y[1]), max(y[2]))", [((0,), ()), ((1,), ()), ((2,), ())]),
        ("mean(exp(-norm2(x - y))*y)", 2, "mean(exp(-norm2(x - y))*y)", [((0, 1), (0, 1))]),
        ("max(y - mean(y))", 2, "cat(max(y[0] - mean(y[0])), max(y[1] - mean(y[1])))", [((0,), ()), ((1,), ())]),
        ("max(norm(y)) + mean(y[0])", 2, "max(norm(y)) + mean(y[0])", [((0, 1), ()), ((0,), ())]),
        ("max(y[1] - abs(x[0] - y[0]))", 2, "max(y[1] - abs(x[0] - y[0]))", [((0, 1), (0,))]),
        ("mean_others(y[1]*x[0])", 2, "mean_others(y[1]*x[0])", [((1,), (0, 1))]),
        (
            "mean(norm(y)) + mean(x*y)",
            2,
            "mean(norm(y)) + cat(mean(x[0]*y[0]), mean(x[1]*y[1]))",
            [((0, 1), ()), ((0,), (0,)), ((1,), (1,))],
        ),
        ("mean(cat(x, y))", 2, "mean(cat(x, y))", [((0, 1), (0, 1))]),  # mean(x[0]) would have no y
        ("x[1]", 2, "x[1]", []),
    ],
)
def test_by_hand(source, d, apart, coordinates):
    tree = coordinatewise(parse(source, d))
    assert tree == parse(apart, d)
    assert [(family.seen, family.own) for family in families(tree)] == coordinates


def test_what_stands_inside_another_shares_its_table():
    tree = coordinatewise(parse("mean(norm(y - mean(y))) + max(y[0]) + mean(y[0])", 2))
    found = families(tree)
    assert [family.seen for family in found] == [(0, 1), (0,)]
    assert [len(family.parts) for family in found] == [3, 1]
    for family in found:
        for i, part in enumerate(family.parts):
            assert set(reductions(part.body)) <= set(family.parts[:i])


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6))
def test_the_numbers_are_the_same(seed):
    d, rng = 3, random.Random(seed)
    tree = random_tree(rng, d, 4, tame=True)
    apart = coordinatewise(tree)
    X = torch.rand(2, 4, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    wanted, found = (target(to_source(e), n=4, d=d)(X) for e in (tree, apart))
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12, equal_nan=True)  # sums in another order
    inside = [part for family in families(apart) for part in family.parts]
    assert sorted(map(to_source, inside)) == sorted(map(to_source, reductions(apart)))
    for part in reductions(apart):
        owner = next(family for family in families(apart) if part in family.parts)
        assert read(part, "y") <= set(owner.seen)
        assert read(part, "x") <= set(owner.own)


@pytest.mark.parametrize("source", ["y*norm(x)", "cat(y[1], x*y[0:2])", "-(y**2)/(1 + abs(x))", "max(y, 0.5)"])
def test_components_are_coordinates(source):
    body = parse(f"mean({source})", 2)
    assert isinstance(body, Reduce)
    X = torch.rand(1, 3, 2, dtype=torch.float64)
    whole = target(to_source(body), n=3, d=2)(X)
    for k, part in enumerate(components(body.body)):
        alone = target(to_source(Reduce("mean", part)), n=3, d=2)(X)[..., 0]
        torch.testing.assert_close(alone, whole[..., k], rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize(
    ("source", "d", "kept", "wanted"),
    [
        ("max(y[3]) - x[1]", 5, [1, 3], "max(y[1]) - x[0]"),
        ("norm(x[1:3])*mean(y[2])", 4, [1, 2], "norm(x[0:2])*mean(y[1])"),
        ("max(norm(x - y))", 2, [0, 1], "max(norm(x - y))"),
    ],
)
def test_coordinates_that_are_not_read_go(source, d, kept, wanted):
    tree = parse(source, d)
    assert sorted(read(tree, "x") | read(tree, "y")) == kept
    assert on_coordinates(tree, kept) == parse(wanted, len(kept))
