from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from sumformer.errors import InputError
from sumformer.nn import MLP, Concatenated, PairMLP, Sumformer, mlp_sumformer, polynomial_sumformer
from sumformer.testing import relative_error


def tokens(n=6, d=4):
    return torch.randn(2, n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


class Shapes(TorchDispatchMode):
    """Every shape that any operation returns."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else (out,):
            if isinstance(tensor, torch.Tensor):
                self.seen.add(tuple(tensor.shape))
        return out


@pytest.mark.parametrize("mean", [False, True])
@torch.no_grad()
def test_formula(mean):
    """A 3.1, one token at a time."""
    torch.manual_seed(0)
    net, x = mlp_sumformer(4, 8, 3, mean=mean).double(), tokens()
    out = net(x)
    for b in range(2):
        total = sum(net.phi(x[b, k]) for k in range(6)) / (6 if mean else 1)
        for i in range(6):
            assert relative_error(out[b, i], net.psi(x[b, i], total)) <= 1e-13


def test_the_sum_is_the_default():
    net = Sumformer(nn.Identity(), Concatenated(nn.Identity()))
    x = tokens()
    assert torch.equal(net(x)[..., 4:], x.sum(1, keepdim=True).expand_as(x))
    assert torch.equal(net(x)[..., :4], x)


def test_the_papers_two():
    net = mlp_sumformer(4, 8, 3)
    assert [layer.out_features for layer in net.phi.layers if isinstance(layer, nn.Linear)] == [50] * 5 + [8]
    net = polynomial_sumformer(4, 3, 2, basis="chebyshev")
    assert net.phi.d_out == net.psi.d_latent == 34
    assert net.phi.basis == "chebyshev"
    assert net(tokens().float()).shape == (2, 6, 2)


def width_seen(net, n, width):
    x = torch.randn(3, n, 4, requires_grad=True)
    with Shapes() as shapes:
        net(x).sum().backward()
    return {shape for shape in shapes.seen if shape[-1:] == (width,) and n in shape}


def test_no_concatenated_tensor_is_formed():
    """d + d' = 4 + 9 = 13 is the width of no tensor with a row per token, forward or backward."""
    n = 17
    factored = Sumformer(MLP(4, 9, 8, 1), PairMLP(4, 9, 3, 8, 2))
    joined = Sumformer(MLP(4, 9, 8, 1), Concatenated(MLP(13, 3, 8, 2)))
    assert width_seen(joined, n, 13) != set()
    assert width_seen(factored, n, 13) == set()
    assert width_seen(mlp_sumformer(4, 9, 3), n, 13) == set()


def test_the_sums_share_of_psi_is_computed_once_per_sequence():
    net, rows = mlp_sumformer(4, 9, 3), []
    net.psi.from_sum.register_forward_hook(lambda module, inputs, out: rows.append(tuple(out.shape)))
    net(torch.randn(3, 17, 4))
    assert rows == [(3, 1, 50)]


def test_phi_may_be_undefined_where_padding_is():
    """Padding is moved to 0 before φ; a φ that is infinite there still does no harm."""

    class Reciprocal(nn.Module):
        def forward(self, x):
            return 1 / x

    net, x = Sumformer(Reciprocal(), Concatenated(nn.Identity())), tokens()
    keep = torch.ones(2, 6, dtype=torch.long)
    keep[:, 4:] = 0
    assert relative_error(net(x, attention_mask=keep)[:, :4], net(x[:, :4])) <= 1e-13


def test_repr_tells_the_type_of_the_map():
    assert "ℝ^{n×d} → ℝ^{n×d_out}, sum" in repr(mlp_sumformer(4, 8, 3))
    assert "mean" in repr(mlp_sumformer(4, 8, 3, mean=True))


@pytest.mark.parametrize("psi", [MLP(6, 2), nn.Sequential(nn.Linear(6, 2))])
def test_a_psi_of_one_argument_is_refused_with_what_to_take(psi):
    with pytest.raises(InputError, match=r"expected ψ of x and Σ, as PairMLP.*Concatenated"):
        Sumformer(MLP(2, 4), psi)
    assert Sumformer(MLP(2, 4), Concatenated(psi))(torch.rand(1, 3, 2)).shape == (1, 3, 2)
