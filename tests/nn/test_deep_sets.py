from __future__ import annotations

import pytest
import torch

from sumformer.nn import MLP, DeepSets, PolynomialFeatures, mlp_deep_sets
from sumformer.testing import relative_error


def tokens(n=6):
    return torch.randn(2, n, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("mean", [False, True])
@torch.no_grad()
def test_formula(mean):
    torch.manual_seed(0)
    net, x = mlp_deep_sets(4, 8, 3, mean=mean).double(), tokens()
    for b in range(2):
        total = sum(net.phi(x[b, k]) for k in range(6)) / (6 if mean else 1)
        assert relative_error(net(x)[b], net.rho(total)) <= 1e-13


def test_it_is_invariant_and_says_so():
    net, x = mlp_deep_sets(4, 8, 3).double(), tokens()
    assert net.invariant
    assert relative_error(net(x.flip(1)), net(x)) <= 1e-13


def test_power_sums_are_exact():
    """ρ = identity, φ = monomials: the power sums themselves (A 2.11)."""
    x = tokens()
    got = DeepSets(PolynomialFeatures(4, 2), torch.nn.Identity())(x)
    assert relative_error(got[:, :4], x.sum(1)) <= 1e-14
    assert relative_error(got[:, 4], (x[..., 0] ** 2).sum(1)) <= 1e-14


def test_the_empty_set_gives_zeros():
    net, x = DeepSets(MLP(4, 8), MLP(8, 3)).double(), tokens()
    keep = torch.ones(2, 6, dtype=torch.bool)
    keep[0] = False
    out = net(x, attention_mask=keep)
    assert (out[0] == 0).all()
    assert relative_error(out[1], net(x)[1]) <= 1e-13
