from __future__ import annotations

import pytest
import torch

from sumformer.errors import ShapeError
from sumformer.nn.bilinear_projection import BilinearProjection
from sumformer.testing import equivariance_error, padding_error, relative_error


@pytest.mark.parametrize("n", [1, 4, 6])
@torch.no_grad()
def test_formula(n):
    torch.manual_seed(0)
    layer = BilinearProjection(3, n_max=6).double()
    x = torch.randn(2, n, 3, dtype=torch.float64)
    wanted = torch.zeros_like(x)
    for i in range(n):
        for j in range(n):
            wanted[:, i] += layer.W_P[i, j] * x[:, j] @ layer.W_O.weight.T
    assert relative_error(layer(x), wanted) <= 1e-14


def test_bound_to_the_order_of_tokens():
    layer = BilinearProjection(3, n_max=6).double()
    assert not layer.equivariant
    assert equivariance_error(layer, torch.randn(2, 6, 3, dtype=torch.float64)) > 1e-3


@pytest.mark.parametrize("n_max", [5, 6, 100])
@pytest.mark.parametrize("interleave", [False, True])
def test_rank_among_real_tokens_decides(interleave, n_max):
    torch.manual_seed(0)
    layer = BilinearProjection(3, n_max).double()
    error = padding_error(
        layer, torch.randn(2, 5, 3, dtype=torch.float64), paddings=(1, 50, 4096), interleave=interleave
    )
    assert error.worst <= 1e-12
    assert error.leak == 0


def test_more_than_n_max_real_tokens_are_refused():
    layer = BilinearProjection(3, n_max=6)
    with pytest.raises(ShapeError, match="at most n_max = 6 tokens"):
        layer(torch.randn(1, 7, 3))
    with pytest.raises(ShapeError, match="at most n_max = 6 real tokens, got 7"):
        layer(torch.randn(1, 8, 3), key_padding_mask=torch.tensor([[True] + [False] * 7]))
