"""Constants of constructed networks, and of polynomial features, wherever a module is built and moved."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
import torch

import sumformer
from sumformer.nn import PolynomialFeatures, polynomial_sumformer
from sumformer.nn.pretrained import _build


def polynomial():
    torch.manual_seed(0)
    return polynomial_sumformer(2, 3, 3, basis="chebyshev").double()


NETWORKS = {
    "PolynomialFeatures": lambda: PolynomialFeatures(2, 3),
    "Sumformer": polynomial,
    "ExpressionSumformer": lambda: sumformer.construct("mean(sigmoid(x-y))*x", 1e-2, d=2).network,
    "MeshSumformer": lambda: sumformer.construct("mean(sigmoid((x-y)/0.2))*x", 1e-1, d=2, route="mesh").network,
    "SymmetricSumformer": lambda: sumformer.construct("x*exp(mean(y))", 1e-1, d=2, n=2, route="symmetric").network,
}
over_networks = pytest.mark.parametrize("name", NETWORKS)


def tokens():
    return torch.rand(3, 2, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def empty(net):
    """The same module without memory for its tensors."""
    with torch.device("meta"):
        return _build(net.config(), Path("config.json")).to(torch.float64)


@over_networks
def test_built_without_memory(name):
    net, x = NETWORKS[name](), tokens()
    assert type(net).__name__ == name
    assert empty(net)(x.to("meta")).shape == net(x).shape
    assigned, filled = empty(net), deepcopy(empty(net)).to_empty(device="cpu")
    assigned.load_state_dict(net.state_dict(), assign=True)
    filled.load_state_dict(net.state_dict())
    for again in (assigned, filled, deepcopy(assigned)):
        assert torch.equal(again(x), net(x))
    assert torch.equal(torch.export.export(assigned, (x,)).module()(x), net(x))


@over_networks
def test_taken_from_memory_and_back(name):
    net, x = NETWORKS[name](), tokens()
    again = deepcopy(net).to("meta")
    assert again(x.to("meta")).shape == net(x).shape
    again.to_empty(device="cpu").load_state_dict(net.state_dict())
    assert torch.equal(again(x), net(x))


def test_they_are_not_saved_and_take_a_dtype():
    net = NETWORKS["SymmetricSumformer"]()
    assert set(net.state_dict()) == {"coefficients"}
    assert {b.dtype for b in net.float().buffers()} == {torch.float32, torch.int64}
