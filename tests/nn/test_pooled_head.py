from __future__ import annotations

import pytest
import torch

from sumformer.errors import InputError
from sumformer.nn.pooled_head import PooledHead
from sumformer.testing import equivariance_error, padding_error, relative_error

POOLS = {"mean": lambda x: x.mean(1), "sum": lambda x: x.sum(1), "max": lambda x: x.max(1).values}


@pytest.mark.parametrize("pool", POOLS)
def test_formula_invariance_and_padding(pool):
    torch.manual_seed(0)
    head = PooledHead(4, 3, pool).double()
    x = torch.randn(2, 6, 4, dtype=torch.float64) - 5  # all negative: zeros of padding would win the maximum
    with torch.no_grad():
        assert relative_error(head(x), POOLS[pool](x) @ head.map.weight.T + head.map.bias) <= 1e-14
    assert head.invariant
    assert equivariance_error(head, x) <= 1e-12
    error = padding_error(head, x, paddings=(2, 4096), interleave=True)
    assert error.worst <= 1e-12
    assert error.leak == 0


@pytest.mark.parametrize("pool", POOLS)
def test_an_empty_set_gives_zeros_and_finite_gradients(pool):
    head = PooledHead(4, 3, pool)
    x = torch.full((2, 3, 4), torch.nan)
    x[1] = 1.0
    x.requires_grad_(True)
    out = head(x, key_padding_mask=torch.tensor([[True] * 3, [False] * 3]))
    assert (out[0] == 0).all()
    assert out[1].isfinite().all()
    out.sum().backward()
    assert (x.grad[0] == 0).all()
    assert head.map.weight.grad.isfinite().all()


def test_unknown_pools_are_refused():
    with pytest.raises(InputError, match="one of mean, sum, max, got 'median'"):
        PooledHead(4, 3, pool="median")
