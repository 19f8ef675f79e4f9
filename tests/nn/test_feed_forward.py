from __future__ import annotations

import pytest
import torch

from sumformer.errors import InputError
from sumformer.nn.feed_forward import FeedForward
from sumformer.testing import relative_error


@torch.no_grad()
def test_formula():
    torch.manual_seed(0)
    layer = FeedForward(3, 5, activation="tanh").double()
    x = torch.randn(2, 4, 3, dtype=torch.float64)
    wanted = torch.zeros_like(x)
    for b in range(2):
        for i in range(4):
            wanted[b, i] = layer.W_2.weight @ torch.tanh(layer.W_1.weight @ x[b, i] + layer.W_1.bias) + layer.W_2.bias
    assert relative_error(layer(x), wanted) <= 1e-14


def test_relu_is_the_default_and_others_are_named():
    assert FeedForward(3, 5).activation == "relu"
    with pytest.raises(InputError, match="relu"):
        FeedForward(3, 5, activation="rleu")


def test_dropout_only_in_training():
    layer, x = FeedForward(3, 50, dropout=0.5), torch.randn(1, 2, 3)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))
