"""Coordinates of an expression depend on those leaves that change them; leaves that meet have numbers of their own."""

from __future__ import annotations

import random

import pytest

from sumformer.certificates.checker.counted.dependence import slots
from sumformer.targets import Node, Reduce, Slice, parse, postorder
from sumformer.targets.coordinatewise import components


def leaves(node: Node) -> dict[Node, int]:
    return {p: p.width for p in postorder(node, into_reductions=False) if isinstance(p, Reduce)}


@pytest.mark.parametrize(
    ("source", "d", "numbers"),
    [
        ("max(y) - min(y)", 3, 2),
        ("norm(max(y)) + min(y[0])", 3, 4),
        ("cat(max(y[0]), max(y[1])*min(y[0]), min(y[1]))", 2, 2),
        ("sin(max(y))*x + 1", 5, 1),
        ("dot(max(y), cat(min(y[0]), x[1], 1))", 3, 4),
        ("x + 2", 2, 0),
    ],
)
def test_as_few_numbers_as_meet(source: str, d: int, numbers: int):
    tree = parse(source, d)
    found = slots(tree, leaves(tree))
    assert 1 + max(found.values(), default=-1) == numbers


def test_numbers_do_not_differ_from_run_to_run():
    """They were given in the order of a set of texts, and with them the bound of a checker changed."""
    tree = parse("norm(cat(max(y), min(y), mean(y)))", 4)
    keys = [(part, k) for part, width in leaves(tree).items() for k in range(width)]
    assert slots(tree, leaves(tree)) == {key: number for number, key in enumerate(keys)}


def test_no_coordinate_meets_two_of_one_number():
    rng = random.Random(0)
    parts = ["max(y)", "min(y)", "mean(y*y)", "max(y[0])", "x", "cat(y_, min(y[1]))".replace("y_", "max(x[0]*y[1])")]
    for _ in range(200):
        terms = [rng.choice(parts) for _ in range(4)]
        source = "".join(f"{rng.choice(['+', '*', '-'])}({t})" for t in terms).lstrip("+*-")
        tree = parse(f"cat({source}, norm({rng.choice(parts)}))", 2)
        found = slots(tree, leaves(tree))
        for one in components(tree):
            used = {key for key in found if any(_reads(part, *key) for part in postorder(one, into_reductions=False))}
            assert len({found[key] for key in used}) == len(used)


def _reads(part: Node, leaf: Node, k: int) -> bool:
    """Whether `part` is a slice of the leaf with coordinate k, or uses all of it."""
    if isinstance(part, Slice):
        return part.arg == leaf and part.start <= k < part.stop
    return not isinstance(part, Reduce) and leaf in part.children
