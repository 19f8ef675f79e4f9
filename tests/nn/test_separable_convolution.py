from __future__ import annotations

import pytest
import torch

from sumformer.errors import InputError
from sumformer.nn.separable_convolution import SeparableConvolution
from sumformer.testing import equivariance_error, padding_error, relative_error


@pytest.mark.parametrize("kernel_size", [1, 3, 7])
@pytest.mark.parametrize("n", [1, 2, 6])
@torch.no_grad()
def test_formula(n, kernel_size):
    torch.manual_seed(0)
    layer = SeparableConvolution(3, kernel_size).double()
    x = torch.randn(2, n, 3, dtype=torch.float64)
    wanted = torch.zeros_like(x)
    for i in range(n):
        for r in range(-(kernel_size // 2), kernel_size // 2 + 1):
            if 0 <= i + r < n:
                wanted[:, i] += layer.W_C[kernel_size // 2 + r] * x[:, i + r]
    assert relative_error(layer(x), wanted @ layer.W_O.weight.T) <= 1e-14


class OverPlaces(SeparableConvolution):
    """Zeroed padding is not enough: neighbours are then places, not tokens."""

    def formula(self, x, keep):
        return super().formula(x, None)


def test_padding_between_neighbours_does_not_part_them():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    assert padding_error(OverPlaces(3).double(), x, paddings=(9,), interleave=True).output > 0.1
    for interleave in (False, True):
        error = padding_error(SeparableConvolution(3).double(), x, paddings=(1, 9, 4096), interleave=interleave)
        assert error.worst <= 1e-12
        assert error.leak == 0


def test_bound_to_the_order_of_tokens_unless_the_window_is_one():
    x = torch.randn(2, 6, 3, dtype=torch.float64)
    for kernel_size in (1, 3):
        layer = SeparableConvolution(3, kernel_size).double()
        assert layer.equivariant == (equivariance_error(layer, x) <= 1e-12)


def test_even_windows_are_refused():
    with pytest.raises(InputError, match="odd kernel_size, got 4"):
        SeparableConvolution(3, 4)
