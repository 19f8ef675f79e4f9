"""Sums over tokens run in float32 or wider: accurate to the rounding of the summands, not of the growing sum."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sumformer.nn import (
    AverageAttention,
    Concatenated,
    DeepSets,
    FavorAttention,
    PerformerAttention,
    PooledHead,
    Sumformer,
    SumMixer,
    mlp_sumformer,
    polynomial_sumformer,
)
from sumformer.nn.performer_attention import favor
from sumformer.testing import relative_error

N = 4096
HALF = [torch.bfloat16, torch.float16]
ONE_ROUNDING = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}
over_halves = pytest.mark.parametrize("dtype", HALF, ids=str)


def positive(dtype):
    """Summands in (0, 1): the sum passes 256 and 2048, where 1 is lost beside it in bfloat16 and float16."""
    return torch.rand(2, N, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


def identity(module):
    """Every square linear map of the module becomes the identity."""
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.eye_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
    return module


class TakeSum(nn.Module):
    """ψ(x, Σ) = Σ."""

    def forward(self, x, total):
        return total.to(x.dtype).expand_as(x)


@over_halves
def test_adding_in_half_precision_would_be_found(dtype):
    x = positive(dtype)
    naive = torch.zeros(2, 4, dtype=dtype)
    for k in range(N):
        naive = naive + x[:, k]
    assert relative_error(naive, x.double().sum(1)) > 10 * ONE_ROUNDING[dtype]


@over_halves
@pytest.mark.parametrize("how", ["bare", "masked", "weighted"])
@pytest.mark.parametrize(
    "net",
    [
        Sumformer(nn.Identity(), TakeSum()),
        mlp_sumformer(4, 8, 3),
        polynomial_sumformer(4, 3, 3),
        SumMixer(4),
        DeepSets(nn.Identity(), nn.Identity()),
    ],
    ids=["identity", "mlp", "polynomial", "sum_mixer", "deep_sets"],
)
@torch.no_grad()
def test_the_summary_is_the_float32_sum_of_the_features(net, how, dtype):
    net, x = net.to(dtype), positive(dtype)
    keep = torch.ones(2, N, dtype=torch.bool)
    keep[:, ::5] = how != "masked"
    weights = torch.rand(2, N) if how == "weighted" else None
    mask = {"key_padding_mask": ~keep} if isinstance(net, SumMixer) else {"attention_mask": keep}
    state = net.summarise(x, weights, **mask)
    features = net.sigma(net.phi(x)) if isinstance(net, SumMixer) else net.phi(x)
    w = keep.double() if weights is None else weights.double()
    assert state.total.dtype == torch.float32
    assert relative_error(state.total, (w.unsqueeze(-1) * features.double()).sum(1)) <= 1e-5
    assert relative_error(state.count, w.sum(1)) <= 1e-6


@over_halves
@pytest.mark.parametrize("weighted", [False, True])
@torch.no_grad()
def test_autocast_does_not_narrow_the_sum(weighted, dtype):
    x, weights = positive(torch.float32), torch.rand(2, N) if weighted else None
    keep = torch.ones(2, N, dtype=torch.bool)
    with torch.autocast("cpu", dtype):
        state = Sumformer(nn.Identity(), TakeSum()).summarise(x, weights, attention_mask=keep)
    wanted = (x.double() if weights is None else x.double() * weights.double().unsqueeze(-1)).sum(1)
    assert state.total.dtype == torch.float32
    assert relative_error(state.total, wanted) <= 1e-5


@over_halves
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("net", "mean"),
    [
        (Sumformer(nn.Identity(), TakeSum()), False),
        (Sumformer(nn.Identity(), TakeSum(), mean=True), True),
        (Sumformer(nn.Identity(), Concatenated(nn.Linear(8, 8))), False),
        (DeepSets(nn.Identity(), nn.Identity()), False),
        (AverageAttention(4), True),
        (PooledHead(4, 4, "sum"), False),
        (PooledHead(4, 4, "mean"), True),
    ],
    ids=["sum", "mean", "concatenated", "deep_sets", "average", "pooled-sum", "pooled-mean"],
)
@torch.no_grad()
def test_outputs_carry_one_rounding_of_the_sum(net, mean, masked, dtype):
    x, keep = positive(dtype), torch.ones(2, N, dtype=torch.bool)
    keep[:, ::5] = not masked
    net = identity(net.to(dtype))
    model = isinstance(net, Sumformer | DeepSets)
    out = net(x, **({"attention_mask": keep} if model else {"key_padding_mask": ~keep}))
    got = (out[:, 1] if out.dim() == 3 else out)[:, -4:]
    total = (x.double() * keep.double().unsqueeze(-1)).sum(1)
    assert relative_error(got, total / keep.sum(1, keepdim=True) if mean else total) <= ONE_ROUNDING[dtype]


@over_halves
@pytest.mark.parametrize("layer", [PerformerAttention(4, k=8), FavorAttention(4, k=8)], ids=["performer", "favor"])
@torch.no_grad()
def test_linear_attention_sums_keys_and_values_in_float32(layer, dtype):
    """Against the same layer in float64 on the same rounded q, k, v: only the last roundings remain."""
    layer, x = identity(layer.to(dtype)), positive(dtype)
    wide = layer.double()
    wanted = wide(x.double())
    assert relative_error(layer.to(dtype)(x), wanted) <= 4 * ONE_ROUNDING[dtype]
    assert favor(*(x.unsqueeze(1) for _ in range(3)), layer.omega).dtype == torch.float32
