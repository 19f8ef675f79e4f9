from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from sumformer.errors import ShapeError
from sumformer.nn.linformer_attention import LinformerAttention
from sumformer.nn.normalisers import Sparsemax
from sumformer.testing import equivariance_error, padding_error, relative_error


def by_loops(layer, x):
    """A 2.5, one head and one query at a time."""
    n, d = x.shape[1], layer.d_head
    heads = []
    for head in range(layer.nhead):
        rows = slice(head * d, (head + 1) * d)
        q, k, v = (x @ weight.weight[rows].T for weight in (layer.W_Q, layer.W_K, layer.W_V))
        out = torch.zeros_like(q)
        for b in range(x.shape[0]):
            keys = sum(torch.outer(layer.E[:, j], k[b, j]) for j in range(n))
            values = sum(torch.outer(layer.F[:, j], v[b, j]) for j in range(n))
            for i in range(n):
                out[b, i] = layer.normaliser(keys @ q[b, i] / math.sqrt(d)) @ values
        heads.append(out)
    return torch.cat(heads, -1) @ layer.W_O.weight.T


@pytest.mark.parametrize("rho", [None, Sparsemax()])
@pytest.mark.parametrize("n", [1, 5, 6])
@torch.no_grad()
def test_formula(n, rho):
    torch.manual_seed(0)
    layer = LinformerAttention(4, n_max=6, k=3, nhead=2, normaliser=rho).double()
    x = torch.randn(2, n, 4, dtype=torch.float64)
    assert relative_error(layer(x), by_loops(layer, x)) <= 1e-14


def test_e_and_f_have_variance_one_over_k():
    torch.manual_seed(0)
    layer = LinformerAttention(4, n_max=2000, k=25)
    for matrix in (layer.E, layer.F):
        assert matrix.mean().item() == pytest.approx(0, abs=4e-3)
        assert matrix.var().item() == pytest.approx(1 / 25, rel=0.03)


def test_equivariant_only_with_equal_columns():
    torch.manual_seed(0)
    layer = LinformerAttention(4, n_max=8, k=3).double()
    x = torch.randn(2, 8, 4, dtype=torch.float64)
    assert not layer.equivariant
    assert equivariance_error(layer, x) > 1e-3
    with torch.no_grad():
        layer.E.copy_(layer.E[:, :1].expand_as(layer.E))
    assert not layer.equivariant
    with torch.no_grad():
        layer.F.copy_(layer.F[:, :1].expand_as(layer.F))
    assert layer.equivariant
    assert equivariance_error(layer, x) <= 1e-12


def test_more_than_n_max_real_tokens_are_refused_but_padding_is_free():
    layer = LinformerAttention(4, n_max=6, k=3)
    with pytest.raises(ShapeError, match="at most n_max = 6 tokens"):
        layer(torch.randn(1, 7, 4))
    padding = torch.zeros(2, 9, dtype=torch.bool)
    padding[:, :3] = True
    layer(torch.randn(2, 9, 4), key_padding_mask=padding)
    padding[1, 0] = False
    with pytest.raises(ShapeError, match="at most n_max = 6 real tokens, got 7"):
        layer(torch.randn(2, 9, 4), key_padding_mask=padding)


class MaskSwallowing(nn.Module):
    """The peer's defect: a mask is accepted and ignored."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, key_padding_mask=None, **kwargs):
        return self.layer(x)


class MaskedByPlace(nn.Module):
    """Half a cure: padding is zeroed, but E and F are read by place instead of by rank among real tokens."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, key_padding_mask=None):
        return self.layer(x if key_padding_mask is None else x.masked_fill(key_padding_mask[..., None], 0.0))


def test_a_swallowed_mask_is_found():
    torch.manual_seed(0)
    layer = LinformerAttention(4, n_max=16, k=3).double()
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    assert padding_error(MaskSwallowing(layer), x, paddings=(7,), fill=1.0).output > 0.1
    assert padding_error(MaskedByPlace(layer), x, paddings=(7,), fill=1.0).worst <= 1e-12  # appended: rank = place
    assert padding_error(MaskedByPlace(layer), x, paddings=(7,), fill=1.0, interleave=True).output > 0.1
    for interleave in (False, True):
        error = padding_error(layer, x, paddings=(7, 4096), interleave=interleave)
        assert error.worst <= 1e-12
        assert error.leak == 0
    with pytest.raises(TypeError, match="mask"):
        layer(x, mask=torch.ones(2, 5))
