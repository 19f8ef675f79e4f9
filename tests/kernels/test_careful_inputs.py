"""Inputs that a kernel could misread: strides, one summary for many queries, derivatives, hooks, modes, batch 0."""

from __future__ import annotations

import pickle

import pytest
import torch
from tests.kernels.test_short_mix import LIMIT, found, leaves
from torch import nn
from torch._subclasses import FakeTensorMode

import sumformer
from sumformer.errors import NotSupportedError
from sumformer.kernels import products
from sumformer.nn import SumMixer, expression_kernels, summary
from sumformer.nn.expression_kernels import ExpressionKernels, kernels_for
from sumformer.nn.token_sum import levels
from sumformer.targets.domain import MAX_TOKENS
from sumformer.testing import relative_error

GAUSS = "sum(exp(-norm2(x-y))*y)/sum(exp(-norm2(x-y)))"


@pytest.fixture(scope="module")
def network() -> nn.Module:
    return sumformer.construct(GAUSS, 1e-2, d=2).network


@pytest.mark.usefixtures("interpreted")
@torch.no_grad()
def test_masks_and_weights_of_any_strides(network):
    kernels, depth, x = ExpressionKernels(network), levels(MAX_TOKENS, network.group), torch.rand(3, 50, 2).double()
    transposed = torch.rand(50, 3).double().t()
    for weights, keep in (
        (None, transposed > 0.3),
        (transposed, None),
        (torch.rand(1, 50).double().expand(3, 50), None),
    ):
        wanted = network.summarise(x, weights, keep)
        got = kernels.summarise(network, x, weights, keep, depth)
        assert (got.total - wanted.total).abs().max() <= 1e-12 * wanted.total.abs().max()


@pytest.mark.usefixtures("interpreted")
@torch.no_grad()
def test_one_summary_serves_all_queries(network):
    kernels, x = ExpressionKernels(network), torch.rand(3, 20, 2).double()
    state = network.summarise(torch.rand(1, 30, 2).double())
    got = kernels.psi_of(network, x, state.count, network._contract(state))
    assert (got - network.apply(x, state)).abs().max() <= 1e-13
    state = network.summarise(x)
    with pytest.raises(RuntimeError):
        kernels.psi_of(network, x[:1], state.count, network._contract(state))


@pytest.mark.usefixtures("interpreted")
@torch.no_grad()
def test_nan_stays_nan(network):
    """Here minimum and maximum keep it by themselves; on a GPU they drop it, which a test marked gpu looks at."""
    kernels, x = ExpressionKernels(network), torch.rand(2, 20, 2).double()
    x[0, 3, 1] = torch.nan
    state = kernels.summarise(network, x, None, None, levels(MAX_TOKENS, network.group))
    assert state.total[0].isnan().any()
    assert state.total[1].isfinite().all()


def test_kernels_stand_back_from_derivatives(network, monkeypatch):
    """Their operators know none: neither of x, nor of weights and summaries, nor forward ones."""
    monkeypatch.setattr(expression_kernels, "runs_on", lambda _: True)
    x, w = torch.rand(1, 5, 2).double(), torch.rand(1, 5).double().requires_grad_()
    frozen = pickle.loads(pickle.dumps(network)).requires_grad_(False)
    assert kernels_for(frozen, x) is not None
    assert kernels_for(frozen, x, w) is None
    seen = []
    torch.func.jvp(lambda y: seen.append(kernels_for(frozen, y)) or y, (x,), (x,))
    with torch.autograd.forward_ad.dual_level():
        seen.append(kernels_for(frozen, x))
    assert seen == [None, None]


def test_tensors_of_a_mode_are_not_kept(network):
    kernels = ExpressionKernels(network)
    with FakeTensorMode():
        kernels._tensors(network, torch.device("cpu"))
    assert not kernels._moved
    kernels._tensors(network, torch.device("cpu"))
    assert kernels._moved
    assert not pickle.loads(pickle.dumps(kernels))._moved


def test_a_network_without_sums_has_no_kernels():
    with pytest.raises(NotSupportedError, match="nothing is summed"):
        ExpressionKernels(sumformer.construct("exp(x)", 1e-2, d=1).network)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_masks_and_weights_of_a_layer_of_any_strides(dtype):
    tensors = leaves(2, 13, dtype)
    keep = (torch.rand(13, 2) > 0.4).t()
    strided = [t if t.dim() == 1 else t.detach().mT.contiguous().mT.requires_grad_() for t in tensors]
    strided[2] = torch.stack([tensors[2].detach()] * 2, 1)[:, 0].requires_grad_()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "_interpreted", False)
        exact = found([t.detach().double().requires_grad_() for t in tensors], keep.contiguous(), "gelu", True)
    for got, wanted in zip(found(strided, keep, "gelu", True), exact, strict=True):
        assert relative_error(got.double(), wanted) <= LIMIT[dtype]


def test_derivatives_of_a_layer_by_transforms():
    torch.manual_seed(0)
    layer, x, v = SumMixer(8, recompute=True), torch.randn(2, 5, 8), torch.randn(2, 5, 8)
    plain = SumMixer(8)
    plain.load_state_dict(layer.state_dict())
    for one, other in zip(torch.func.jvp(layer, (x,), (v,)), torch.func.jvp(plain, (x,), (v,)), strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    grads = [torch.func.grad(lambda y, net=net: net(y).square().sum())(x) for net in (layer, plain)]
    assert torch.allclose(*grads, atol=1e-5)


def test_forward_mode_through_prefix_sums(monkeypatch):
    monkeypatch.setattr(summary, "runs_on", lambda _: True)
    x, v = torch.randn(1, 6, 3), torch.randn(1, 6, 3)
    _, tangent = torch.func.jvp(lambda y: summary.prefix_summaries(y).total, (x,), (v,))
    assert torch.allclose(tangent, v.cumsum(1), atol=1e-6)


def test_parts_of_a_layer_may_be_replaced_hooked_and_dropped():
    torch.manual_seed(0)
    layer, plain, x = SumMixer(8, recompute=True), SumMixer(8), torch.randn(1, 5, 8)
    plain.load_state_dict(layer.state_dict())
    calls = []
    handle = layer.phi.register_forward_hook(lambda *_: calls.append(1))
    layer(x)
    handle.remove()
    assert calls
    for net in (layer, plain):
        nn.utils.parametrizations.orthogonal(net.from_sum)
    plain.load_state_dict(layer.state_dict())
    assert torch.allclose(layer(x), plain(x), atol=1e-6)
    layer.drop.p = 0.5
    assert not torch.equal(layer(x), layer(x))


def test_float64_is_left_alone_by_autocast():
    layer, x = SumMixer(8, recompute=True).double(), torch.randn(1, 5, 8).double()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(x).dtype == torch.float64


def test_no_sequences_at_all():
    assert SumMixer(8, recompute=True)(torch.zeros(0, 5, 8)).shape == (0, 5, 8)


def test_nothing_kept_is_said():
    tensors = leaves(1, 4, torch.float32)
    y = torch.ops.sumformer.sum_mix(*tensors, None, None, "gelu", True, False, False)[0]
    with pytest.raises(RuntimeError, match="save=False"):
        y.sum().backward()
