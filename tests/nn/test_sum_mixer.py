from __future__ import annotations

import pytest
import torch
from torch.nn.functional import gelu

from sumformer.errors import InputError, ShapeError
from sumformer.nn import SumMixer
from sumformer.testing import relative_error


def tokens(n=6):
    return torch.randn(2, n, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("mean", [False, True])
@torch.no_grad()
def test_formula(mean):
    torch.manual_seed(0)
    net, x = SumMixer(4, 6, mean=mean).double(), tokens()
    out = net(x)
    for b in range(2):
        total = sum(gelu(net.phi.weight @ x[b, k] + net.phi.bias) for k in range(6)) / (6 if mean else 1)
        for i in range(6):
            hidden = gelu(net.from_token(x[b, i]) + net.from_sum.weight @ total)
            assert relative_error(out[b, i], net.out(hidden)) <= 1e-13


def test_the_mean_is_the_default_and_does_not_grow_with_n():
    torch.manual_seed(0)
    net, x = SumMixer(4).double(), tokens()
    assert net.mean
    assert net.d_latent == 4
    assert relative_error(net(x.repeat(1, 50, 1))[:, :6], net(x)) <= 1e-12


def test_shape_of_a_self_attention_layer():
    """What nn.MultiheadAttention(batch_first=True) takes and gives: same shapes, key_padding_mask True = ignore."""
    x, mask = tokens(), torch.zeros(2, 6, dtype=torch.bool)
    mask[0, 4:] = True
    peer = torch.nn.MultiheadAttention(4, 2, batch_first=True).double()
    assert SumMixer(4).double()(x, key_padding_mask=mask).shape == peer(x, x, x, key_padding_mask=mask)[0].shape


def test_dropout_acts_in_training_alone():
    torch.manual_seed(0)
    net, x = SumMixer(4, dropout=0.5).double(), tokens()
    assert not torch.equal(net(x), net(x))
    net.eval()
    assert torch.equal(net(x), net(x))


def test_summarise_takes_the_layers_mask_and_names_itself():
    net = SumMixer(4).double()
    with pytest.raises(ShapeError, match=r"SumMixer.summarise: expected a tensor of shape \(batch, n, 4\)"):
        net.summarise(tokens()[..., :3])
    with pytest.raises(TypeError, match="attention_mask"):
        net.summarise(tokens(), attention_mask=torch.ones(2, 6))


def test_bad_sizes_are_named_all_at_once():
    with pytest.raises(InputError, match="d_model = 0, d_latent = -1"):
        SumMixer(0, -1)
    with pytest.raises(InputError, match="got 'step'"):
        SumMixer(4, activation="step")


def test_repr_tells_the_type_of_the_map():
    assert "ℝ^{n×4} → ℝ^{n×4}, mean over 6" in repr(SumMixer(4, 6))
