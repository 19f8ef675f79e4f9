from __future__ import annotations

import pytest
import torch

from sumformer.errors import InputError, ShapeError
from sumformer.nn import MLP, Concatenated, PairMLP
from sumformer.testing import relative_error


def pair(n=5):
    generator = torch.Generator().manual_seed(0)
    x, total = (torch.randn(2, m, d, generator=generator, dtype=torch.float64) for m, d in ((n, 3), (1, 4)))
    return x, total


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_the_factored_first_layer_is_the_joined_one(depth):
    """W [x, Σ] = W_x x + W_s Σ: copy the weights into an MLP on the concatenation, and compare with gradients."""
    torch.manual_seed(0)
    psi = PairMLP(3, 4, 2, hidden=6, depth=depth).double()
    joined = Concatenated(MLP(7, 2, hidden=6, depth=depth)).double()
    first, *rest = (layer for layer in joined.module.layers if isinstance(layer, torch.nn.Linear))
    with torch.no_grad():
        first.weight.copy_(torch.cat([psi.from_token.weight, psi.from_sum.weight], 1))
        first.bias.copy_(psi.from_token.bias)
        for layer, wanted in zip(rest, (x for x in psi.rest.layers if isinstance(x, torch.nn.Linear)), strict=True):
            layer.load_state_dict(wanted.state_dict())
    x, total = (tensor.requires_grad_(True) for tensor in pair())
    assert relative_error(psi(x, total), joined(x, total)) <= 1e-13
    got = torch.autograd.grad(psi(x, total).square().sum(), (x, total))
    wanted = torch.autograd.grad(joined(x, total).square().sum(), (x, total))
    assert all(relative_error(g, w) <= 1e-12 for g, w in zip(got, wanted, strict=True))


def test_one_sum_per_sequence_or_one_per_token():
    psi = PairMLP(3, 4, 2, hidden=6, depth=2).double()
    x, total = pair()
    assert relative_error(psi(x, total.expand(-1, 5, -1)), psi(x, total)) <= 1e-13


def test_a_float32_sum_beside_half_precision_tokens():
    psi = PairMLP(3, 4, 2, hidden=6, depth=2).bfloat16()
    x, total = pair()
    assert psi(x.bfloat16(), total.float()).dtype == torch.bfloat16
    assert Concatenated(torch.nn.Identity())(x.bfloat16(), total.float()).dtype == torch.bfloat16


def test_wrong_widths_are_named():
    psi = PairMLP(3, 4, 2).double()
    x, total = pair()
    with pytest.raises(ShapeError, match=r"PairMLP: expected a tensor of shape \(…, 3\), got shape \(2, 1, 4\)"):
        psi(total, total)
    with pytest.raises(ShapeError, match=r"PairMLP \(Σ\): expected a tensor of shape \(…, 4\), got shape \(2, 5, 3\)"):
        psi(x, x)


def test_depth_must_be_positive():
    with pytest.raises(InputError, match="depth = 0"):
        PairMLP(3, 4, 2, depth=0)
    assert "ℝ^3 × ℝ^4 → ℝ^2" in repr(PairMLP(3, 4, 2))
