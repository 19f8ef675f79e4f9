from __future__ import annotations

import math

import pytest
import torch

from sumformer.errors import InputError, ShapeError
from sumformer.nn.normalisers import Entmax15, Hardmax, Softmax, Sparsemax
from sumformer.nn.softmax_attention import SoftmaxAttention
from sumformer.testing import relative_error


def by_loops(layer, x):
    """A 2.1–2.2, one head and one query at a time."""
    h, d = layer.nhead, layer.d_head
    heads = []
    for head in range(h):
        rows = slice(head * d, (head + 1) * d)
        bias = layer.W_Q.bias[rows] if layer.query_bias else 0.0
        q, k, v = x @ layer.W_Q.weight[rows].T + bias, x @ layer.W_K.weight[rows].T, x @ layer.W_V.weight[rows].T
        out = torch.zeros_like(q)
        for b in range(x.shape[0]):
            for i in range(x.shape[1]):
                logits = torch.stack([q[b, i] @ k[b, j] for j in range(x.shape[1])])
                out[b, i] = layer.normaliser(logits / math.sqrt(d) if layer.scale else logits) @ v[b]
        heads.append(out)
    return torch.cat(heads, -1) @ layer.W_O.weight.T


@pytest.mark.parametrize("rho", [Softmax(), Hardmax(), Sparsemax(), Entmax15()])
@pytest.mark.parametrize(("nhead", "d_head", "query_bias", "scale"), [(1, None, False, True), (2, 3, True, False)])
@torch.no_grad()
def test_formula(rho, nhead, d_head, query_bias, scale):
    torch.manual_seed(0)
    layer = SoftmaxAttention(4, nhead, d_head, rho, query_bias, scale).double()
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    assert relative_error(layer(x), by_loops(layer, x)) <= 1e-14


def test_no_biases_by_default():
    assert [name for name, _ in SoftmaxAttention(4, 2).named_parameters()] == [f"W_{w}.weight" for w in "QKVO"]


def test_heads_must_divide_the_model():
    with pytest.raises(InputError, match="divisible by nhead, got 4 and 3"):
        SoftmaxAttention(4, 3)
    assert SoftmaxAttention(4, 3, d_head=2)(torch.randn(1, 2, 4)).shape == (1, 2, 4)


def test_bad_sizes_are_named_all_at_once():
    with pytest.raises(InputError, match="d_model = 0, nhead = -1"):
        SoftmaxAttention(0, -1)


def test_unknown_keyword_and_wrong_width():
    layer = SoftmaxAttention(4)
    with pytest.raises(TypeError, match="mask"):
        layer(torch.randn(1, 2, 4), mask=torch.ones(1, 2))
    with pytest.raises(ShapeError, match=r"SoftmaxAttention: expected .*4\), got shape \(1, 2, 5\)"):
        layer(torch.randn(1, 2, 5))


def test_the_normaliser_survives_saving(tmp_path):
    layer = SoftmaxAttention(4, 2, normaliser=Sparsemax(), query_bias=True, scale=False)
    layer.save_pretrained(tmp_path)
    again = SoftmaxAttention.from_pretrained(tmp_path)
    x = torch.randn(2, 3, 4)
    assert isinstance(again.normaliser, Sparsemax)
    assert torch.equal(again(x), layer(x))


def test_repr_tells_the_type_of_the_map():
    assert "ℝ^{n×4} → ℝ^{n×4}, 2 heads of 2" in repr(SoftmaxAttention(4, 2))
