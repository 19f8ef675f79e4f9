"""Targets: from text, functions and trees; what they accept; how they print."""

import copy
import pickle

import pytest
import torch

from sumformer.errors import DtypeError, InputError, ShapeError, TargetError
from sumformer.targets import Binary, Box, Token, Tokens, as_node, parse, target
from sumformer.targets.functions import exp, mean, norm2


def test_text_function_and_tree_give_the_same_target():
    text = target("x + mean(exp(-norm2(x - y))*y)", d=2)
    assert text == target(lambda x, y: x + mean(exp(-norm2(x - y)) * y), d=2)
    assert text == target(parse(text.source, 2), d=2)
    assert hash(text) == hash(target(text.source, d=2))
    assert target(Binary("+", as_node(1), as_node(2))).source == "3"


def test_repr_tells_the_type_of_the_map():
    assert repr(target("x + mean(y)", d=2)) == 'Target("x + mean(y)", [0,1]^2, any n, ℝ^{n×2} → ℝ^{n×2})'
    assert repr(target("norm(x)", n=3, d=2, box="0:1,-1:1")) == (
        'Target("norm(x)", [0,1]×[-1,1], n = 3, ℝ^{3×2} → ℝ^{3×1})'
    )


def test_it_can_be_told_in_three_strings_and_read_back():
    t = target("sum_others(y)*x", n="..50", d=2, box="-1:1")
    assert (t.source, str(t.tokens), str(t.box)) == ("sum_others(y)*x", "2..50", "-1:1")
    assert target(t.source, n=str(t.tokens), d=2, box=str(t.box)) == t
    assert pickle.loads(pickle.dumps(t)) == t
    assert copy.deepcopy(t) == t


def test_others_need_two_tokens():
    t = target("mean_others(y)")
    assert t.tokens.minimum == t.least_tokens == 2
    assert target(t.source, n=str(t.tokens)) == t
    with pytest.raises(InputError, match="at least 2"):
        target("mean_others(y)", n=1)
    with pytest.raises(InputError, match="n ≥ 2"):
        type(t)(t.expression, 1, t.box, Tokens(1, 5))


def test_the_number_of_tokens_is_a_symbol_for_any():
    with pytest.raises(TargetError, match="needs tokens"):
        target("x + sum(y)")
    assert target("x + sum(y)", n="..1000").countless == parse("x + sum(y)", 1)
    assert target("sum(x*y)/sum(y)").countless == parse("mean(x*y)/mean(y)", 1)


def test_values_and_input_checks():
    t = target("x - mean(y)", n="2..4", d=2)
    X = torch.rand(3, 4, 2)
    torch.testing.assert_close(t(X), X - X.mean(1, keepdim=True))
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [0, 0, 1, 1]])
    assert t(X, attention_mask=mask).shape == (3, 4, 2)
    assert t(X, sources=X[:, :1], weights=torch.full((3, 1), 3.0)).shape == (3, 4, 2)
    for bad, keywords, error in [
        (X[0], {}, ShapeError),
        (X[..., :1], {}, ShapeError),
        (X.long(), {}, DtypeError),
        (X[:, :1], {}, InputError),
        (torch.rand(3, 5, 2), {}, InputError),
        (X, {"attention_mask": torch.eye(4)[:3]}, InputError),
        (X, {"sources": X[:, :1]}, InputError),
    ]:
        with pytest.raises(error):
            t(bad, **keywords)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("y",), TargetError),
        ((3,), InputError),
        ((Token("x", 2),), TargetError),
        ((Token("y", 1),), TargetError),
        ((lambda x, y: "x",), TargetError),
    ],
)
def test_wrong_expressions_are_refused(arguments, error):
    with pytest.raises(error):
        target(*arguments)


@pytest.mark.parametrize("keywords", [{"d": 0}, {"d": True}, {"box": "0:1,0:1"}, {"box": Box.unit(2)}, {"n": "few"}])
def test_wrong_domains_are_refused(keywords):
    with pytest.raises(InputError):
        target("x", **keywords)


def test_trees_built_too_large_are_refused():
    x = Token("x", 1)
    for _ in range(13):
        x = x + x
    with pytest.raises(TargetError, match="nodes"):
        target(x)
    long = as_node(10**1000 + 1)
    with pytest.raises(TargetError, match="canonical source"):
        target(sum((long * Token("x", 1) for _ in range(10)), start=as_node(0)))
