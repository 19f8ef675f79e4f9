from __future__ import annotations

import pytest
import torch

from sumformer.errors import InputError, ShapeError
from sumformer.nn import MLP
from sumformer.nn.mlp import activation_module
from sumformer.testing import relative_error


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "tanh"])
@pytest.mark.parametrize("depth", [0, 1, 3])
@torch.no_grad()
def test_formula(depth, activation):
    torch.manual_seed(0)
    net, x = MLP(4, 2, 6, depth, activation).double(), torch.randn(3, 4, dtype=torch.float64)
    linear = [layer for layer in net.layers if isinstance(layer, torch.nn.Linear)]
    sigma = {"relu": torch.relu, "tanh": torch.tanh}.get(activation) or getattr(torch.nn.functional, activation)
    wanted = x
    for layer in linear[:-1]:
        wanted = sigma(wanted @ layer.weight.T + layer.bias)
    assert len(linear) == depth + 1
    assert relative_error(net(x), wanted @ linear[-1].weight.T + linear[-1].bias) <= 1e-14


def test_token_by_token():
    net, x = MLP(4, 2).double(), torch.randn(2, 5, 4, dtype=torch.float64)
    assert relative_error(net(x)[1, 3], net(x[1, 3])) <= 1e-14


def test_bad_arguments():
    with pytest.raises(InputError, match="expected one of relu, gelu, silu, tanh, got 'sine'"):
        activation_module("sine")
    with pytest.raises(InputError, match="d_in = 0, hidden = -2"):
        MLP(0, 1, hidden=-2)
    with pytest.raises(InputError, match="depth = -1"):
        MLP(1, 1, depth=-1)
    with pytest.raises(ShapeError, match=r"MLP: expected a tensor of shape \(…, 4\), got shape \(2, 3\)"):
        MLP(4, 2)(torch.zeros(2, 3))
    with pytest.raises(TypeError, match="got list"):
        MLP(4, 2)([1.0] * 4)


def test_repr_tells_the_type_of_the_map():
    assert "ℝ^4 → ℝ^2" in repr(MLP(4, 2))
