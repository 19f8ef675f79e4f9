"""Tensors: the fast evaluation equals the definition, in values and gradients, for masks, sources and weights."""

import math
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sumformer.errors import DtypeError, InputError, ShapeError
from sumformer.targets import parse, reductions
from sumformer.targets.torch_evaluation import evaluate_tensor, own_parts

from .random_trees import naive, random_tree

GAUSS = "sum(exp(-norm2(x - y))*y)/sum(exp(-norm2(x - y)))"
SOURCES = (GAUSS, "mean(y)", "x*sum(y)", "max(x*y) - min(y)", "mean((y - mean(sigmoid(x - y)))**2)", "2")
OTHERS = ("sum_others(y)", "mean_others(exp(y))", "sum_others(1/norm2(x - y))", "mean_others(y - sum_others(y))*x")


def tokens(batch, n, d, seed=0, dtype=torch.float64):
    return torch.rand(batch, n, d, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**63), st.integers(1, 3), st.integers(2, 4), st.integers(1, 5))
def test_random_trees_against_the_definition(seed, d, n, depth):
    tree = random_tree(Random(seed), d, depth, tame=True)
    X = tokens(2, n, d, seed % 1000)
    try:
        expected = torch.tensor([[naive(tree, x.tolist(), i) for i in range(n)] for x in X], dtype=X.dtype)
    except OverflowError:
        return
    if not bool(expected.abs().max() < 1e6):
        return
    for budget in (2**24, 5):
        torch.testing.assert_close(evaluate_tensor(tree, X, budget=budget), expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("source", SOURCES + OTHERS)
def test_chunks_change_neither_values_nor_gradients(source):
    tree = parse(source, 2)
    results = []
    for budget in (2**24, 1, 30):
        X = tokens(2, 7, 2).requires_grad_()
        value = evaluate_tensor(tree, X, budget=budget)
        if value.requires_grad:
            value.sin().sum().backward()
            assert X.grad.isfinite().all()
        results.append((value.detach(), X.grad))
    for value, gradient in results[1:]:
        torch.testing.assert_close(value, results[0][0])
        assert (gradient is None) == (results[0][1] is None)
        if gradient is not None:
            torch.testing.assert_close(gradient, results[0][1])


@pytest.mark.parametrize("source", SOURCES + OTHERS)
def test_padding_does_not_matter_even_when_it_is_nan(source):
    tree = parse(source, 2)
    X = tokens(3, 6, 2)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 0, 1, 0, 0], [0, 1, 1, 0, 0, 1]])
    padded = X.masked_fill(mask[..., None] == 0, math.nan).requires_grad_()
    value = evaluate_tensor(tree, padded, attention_mask=mask)
    for b in range(3):
        kept = mask[b] == 1
        torch.testing.assert_close(value[b, kept], evaluate_tensor(tree, X[b : b + 1, kept])[0])
        assert (value[b, ~kept] == 0).all()
    if value.requires_grad:
        value.sum().backward()
        assert padded.grad.isfinite().all()


@pytest.mark.parametrize("source", SOURCES)
def test_integer_weights_are_repetitions(source):
    tree = parse(source, 2)
    X, Y = tokens(2, 5, 2), tokens(2, 3, 2, seed=1)
    weights = torch.tensor([[1.0, 0.0, 3.0], [2.0, 1.0, 1.0]], dtype=X.dtype)
    value = evaluate_tensor(tree, X, sources=Y, weights=weights)
    for b in range(2):
        repeated = Y[b].repeat_interleave(weights[b].long(), dim=0)[None]
        torch.testing.assert_close(value[b], evaluate_tensor(tree, X[b : b + 1], sources=repeated)[0])
    keep = torch.tensor([[1, 0, 1], [1, 1, 0]])
    masked = evaluate_tensor(tree, X, sources=Y, weights=weights, attention_mask=keep)
    torch.testing.assert_close(masked, evaluate_tensor(tree, X, sources=Y, weights=weights * keep))


def test_sources_equal_to_the_tokens_change_nothing():
    X = tokens(2, 5, 2)
    tree = parse(GAUSS, 2)
    torch.testing.assert_close(evaluate_tensor(tree, X, sources=X), evaluate_tensor(tree, X))


def test_gradients_are_those_of_finite_differences():
    X = tokens(1, 4, 2).requires_grad_()
    for source in (GAUSS, "x + 7*x**2 + 3*x*sum_others(y)**3", "mean_others(sin(x*y))"):
        tree = parse(source, 2)
        assert torch.autograd.gradcheck(lambda t, tree=tree: evaluate_tensor(tree, t, budget=16), (X,))


def test_the_own_token_is_left_out_without_subtracting():
    X = torch.tensor([[[30.0], [0.0], [0.0]]])  # e^30 would drown 1 + 1 in float32
    assert evaluate_tensor(parse("sum_others(exp(y))", 1), X)[0, 0, 0] == 2
    assert evaluate_tensor(parse("sum_others(1/norm2(x - y))", 1), tokens(1, 9, 1)).isfinite().all()


@pytest.mark.parametrize("source", ["mean(y)", "mean((y - mean(y))**2)", "x - sum_others(y**2)", "max(y) - x"])
def test_bodies_without_x_cost_linear_time(source):
    """200,000 tokens: 4·10^10 pairs would never end."""
    tree = parse(source, 1)
    assert all(part.body not in own_parts(tree) for part in reductions(tree))
    assert evaluate_tensor(tree, tokens(1, 200_000, 1)).isfinite().all()


def test_memory_stays_within_the_budget():
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            largest = max(largest, out.numel() if isinstance(out, torch.Tensor) else 0)
            return out

    X = tokens(1, 500, 2)
    with Watch():
        evaluate_tensor(parse(GAUSS, 2), X, budget=20_000)
    assert largest <= 20_000


def test_narrow_and_wide_tokens_add_alike():
    for d in (1, 16, 17, 40):
        X = tokens(1, 2, d)
        value = evaluate_tensor(parse("cat(total(x), norm2(x), dot(x, x + 1))", d), X)
        expected = torch.stack([X.sum(-1), (X * X).sum(-1), (X * (X + 1)).sum(-1)], dim=-1)
        torch.testing.assert_close(value, expected)


def test_small_cases():
    X = tokens(2, 1, 2)
    assert (evaluate_tensor(parse("sum_others(y)", 2), X) == 0).all()
    assert (evaluate_tensor(parse("sum_others(x*y)", 2), X) == 0).all()
    for source in ("mean_others(y)", "mean_others(x*y)"):
        with pytest.raises(InputError, match="at least 2 tokens"):
            evaluate_tensor(parse(source, 2), X)
    assert evaluate_tensor(parse("cat(1, x, 2)", 2), X).shape == (2, 1, 4)
    assert evaluate_tensor(parse("1e400*x", 2), X).isinf().all()
    assert evaluate_tensor(parse("-1e400*x", 2), X.half()).dtype == torch.float16


def test_wrong_inputs_are_refused():
    X, mean, others = tokens(2, 3, 2), parse("mean(y)", 2), parse("sum_others(y)", 2)
    ones = torch.ones(2, 3, dtype=X.dtype)
    for tree, arguments, error in [
        (mean, {"X": X[0]}, ShapeError),
        (mean, {"X": X[..., :1]}, ShapeError),
        (mean, {"X": X[:, :0]}, ShapeError),
        (mean, {"X": X.long()}, DtypeError),
        (mean, {"X": X, "sources": X[:1]}, ShapeError),
        (mean, {"X": X, "sources": X.float()}, DtypeError),
        (mean, {"X": X, "weights": ones[:, :2]}, ShapeError),
        (mean, {"X": X, "weights": ones.float()}, DtypeError),
        (mean, {"X": X, "weights": -ones}, InputError),
        (mean, {"X": X, "weights": 0 * ones}, InputError),
        (mean, {"X": X, "attention_mask": ones[:1]}, ShapeError),
        (mean, {"X": X, "attention_mask": 0 * ones}, InputError),
        (others, {"X": X, "sources": X}, InputError),
        (others, {"X": X, "weights": ones}, InputError),
    ]:
        with pytest.raises(error):
            evaluate_tensor(tree, **arguments)
