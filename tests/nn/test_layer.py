from __future__ import annotations

import pytest
import torch

from sumformer.errors import DtypeError, ShapeError
from sumformer.nn.layer import Layer
from sumformer.testing import padding_error


class Doubling(Layer):
    """The smallest layer, with a constant that padding must not show."""

    def formula(self, x, keep):
        return 2 * x + 1


def test_padding_is_zero_going_in_and_coming_out():
    x = torch.tensor([[[1.0], [torch.nan], [torch.inf]]], requires_grad=True)
    out = Doubling()(x, key_padding_mask=torch.tensor([[False, True, True]]))
    assert out.flatten().tolist() == [3.0, 0.0, 0.0]
    out.sum().backward()
    assert x.grad.flatten().tolist() == [2.0, 0.0, 0.0]
    assert padding_error(Doubling(), torch.randn(2, 3, 1)).worst == 0


def test_a_layer_without_formula_is_not_a_layer():
    with pytest.raises(TypeError, match="formula"):
        Layer()


@pytest.mark.parametrize(
    ("x", "mask", "error"),
    [
        (torch.zeros(2, 3), None, ShapeError),
        (torch.zeros(2, 0, 1), None, ShapeError),
        (torch.zeros(2, 3, 1, dtype=torch.long), None, DtypeError),
        (torch.zeros(2, 3, 1), torch.zeros(2, 4, dtype=torch.bool), ShapeError),
        (torch.zeros(2, 3, 1), torch.zeros(2, 3), DtypeError),
    ],
)
def test_bad_input_names_the_layer(x, mask, error):
    with pytest.raises(error, match="Doubling: expected"):
        Doubling()(x, key_padding_mask=mask)
