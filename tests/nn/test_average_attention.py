from __future__ import annotations

import torch

from sumformer.nn.average_attention import AverageAttention
from sumformer.testing import padding_error, relative_error


@torch.no_grad()
def test_formula():
    torch.manual_seed(0)
    layer = AverageAttention(4, d_head=3).double()
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    ones = torch.ones(5, 1, dtype=torch.float64)
    assert relative_error(layer(x), ones @ ones.T / 5 @ x @ layer.W_V.weight.T @ layer.W_O.weight.T) <= 1e-14


class MeanOverPadding(AverageAttention):
    """The peers' defect: divided by n, padding included."""

    def formula(self, x, keep):
        return super().formula(x, None)


def test_counting_padding_is_found():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    assert padding_error(MeanOverPadding(4).double(), x, paddings=(5,)).output > 0.4
    assert padding_error(AverageAttention(4).double(), x, paddings=(5, 4096)).worst <= 1e-12


def test_bfloat16_is_summed_in_float32():
    layer = AverageAttention(2).bfloat16()
    with torch.no_grad():
        layer.W_V.weight.copy_(torch.eye(2))
        layer.W_O.weight.copy_(torch.eye(2))
    assert (layer(torch.ones(1, 3000, 2, dtype=torch.bfloat16)) == 1).all()
