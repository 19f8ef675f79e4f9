"""What a refusal for the size of the numbers names: the same construction in exact arithmetic."""

from __future__ import annotations

import importlib
import re
from fractions import Fraction

import numpy as np
import pytest
import torch

import sumformer
from sumformer.errors import InputError, RefusedError, ShapeError
from sumformer.theorems.exact_transformer import exact_transformer


def test_exact_arithmetic_goes_where_float64_cannot():
    f = sumformer.target("x+mean(y)", n=4)
    with pytest.raises(RefusedError, match="float64") as refusal:
        sumformer.construct(f, 2.0, architecture="deep-transformer")
    module, name = re.search(r"exact arithmetic: ([\w.]+)\.(\w+)\(f, ε\)", str(refusal.value)).groups()
    found = getattr(importlib.import_module(module), name)(f, 2.0)
    assert found.bound <= 2.0
    assert 64 * found.layers.magnitude.overall > 2**53
    q = found.choice.grid.q
    X = [[[Fraction(2 * k + 1, 2 * q)] for k in row] for row in ([1, 4, 6, 9], [3, 0, 9, 2])]
    wanted = f(torch.tensor(X, dtype=torch.float64))
    assert np.abs(found(X).astype(np.float64) - wanted.numpy()).max() < 1e-9
    equal, outside = [[0.1], [0.1], [0.5], [0.7]], [[-0.1], [0.2], [0.5], [0.7]]
    assert (found([equal, outside]) == 0).all()


def test_where_layers_are_too_many_it_is_not_offered():
    with pytest.raises(RefusedError) as refusal:
        sumformer.construct("x+mean(y)", 1e-3, architecture="deep-transformer", n=2)
    assert "float64 does not represent" in str(refusal.value)
    assert "exact" not in str(refusal.value)
    with pytest.raises(RefusedError, match="at most 24000 are built"):
        exact_transformer("x+mean(y)", 1e-3, n=2)


@pytest.mark.parametrize(
    "options",
    [
        {"box": "-2:5"},
        {"box": "-2:5", "positions": True},
        {"box": "-2:5", "pattern": "star:1"},
    ],
)
def test_the_mean_error_lies_under_the_bound(options):
    """d_1 is at most the bound; a box of its own, places and patterns included."""
    found = exact_transformer("x+mean(y)", 50.0, n=2, **options)
    assert found.bound <= 50.0
    step = (torch.arange(17, dtype=torch.float64) + 0.37) / 17
    X = torch.cartesian_prod(7 * step - 2, 7 * step - 2).reshape(-1, 2, 1)
    error = np.abs(found(X).astype(np.float64) - found.target(X).numpy()).sum((1, 2)).mean() * 7**2
    assert 0.5 * found.bound < error <= found.bound


def test_what_does_not_fit_is_said():
    with pytest.raises(InputError, match="one number of tokens"):
        exact_transformer("x+mean(y)", 2.0, n="any")
    with pytest.raises(InputError, match="1 ≤ p < ∞"):
        exact_transformer("x+mean(y)", 2.0, n=2, p=0.5)
    found = exact_transformer("x+mean(y)", 1.0, n=2)
    with pytest.raises(ShapeError, match=r"tokens \(batch, 2, 1\)"):
        found([[0.5], [0.2]])
    with pytest.raises(InputError, match="finite"):
        found([[[float("nan")], [0.2]]])
    with pytest.raises(RefusedError, match="without a formula"):
        exact_transformer(lambda X: X, 1.0, n=2, lipschitz=1.0)
