from __future__ import annotations

import pytest
import torch
from largest_tensor import LargestTensor

from sumformer.nn.prefix_attention import CHUNK, FeatureState, prefix_attention
from sumformer.testing import relative_error


def inputs(n, dtype=torch.float64, scale=1.0):
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, 2, n, 6), (2, 2, n, 6), (2, 2, n, 3))
    log_q, log_k, v = (torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes)
    return scale * log_q, scale * log_k, v


def naive(log_q, log_k, v):
    """The definition, with all pairs and features in memory."""
    weights = (log_q.unsqueeze(-2) + log_k.unsqueeze(-3)).exp().sum(-1).tril()
    return weights @ v, weights.sum(-1, keepdim=True)


@pytest.mark.parametrize("n", [1, 2, 3, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
def test_all_pairs(n):
    arguments = [y.requires_grad_(True) for y in inputs(n)]
    total, normaliser, c, _ = prefix_attention(*arguments)
    for got, wanted in zip((total * c.exp(), normaliser * c.exp()), naive(*arguments), strict=True):
        assert relative_error(got, wanted) <= 1e-13
        upstream = torch.rand_like(wanted)
        gradients = (torch.autograd.grad(y, arguments, upstream, True, allow_unused=True) for y in (got, wanted))
        for g, w in zip(*gradients, strict=True):
            assert (torch.zeros(()) if w is None else relative_error(g, w)) <= 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_nothing_overflows_and_the_normaliser_is_at_least_one(dtype):
    """Logarithms over ±10,000, of which any may come first; they themselves are rounded to 1e-3 in float32."""
    arguments = [y.requires_grad_(True) for y in inputs(200, dtype, scale=3000.0)]
    total, normaliser, _, state = prefix_attention(*arguments)
    assert (normaliser >= 1 - 4e-3).all()
    out = total / normaliser
    assert (out.abs() <= arguments[2].abs().amax(2, keepdim=True) * 1.01).all()
    for part in (*torch.autograd.grad(out.sum(), arguments), state.peak, state.total):
        assert part.isfinite().all()


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_the_state_is_all_that_is_needed(scale):
    log_q, log_k, v = inputs(150, scale=scale)
    wanted, state = prefix_attention(log_q, log_k, v), None
    pieces = []
    for start, end in ((0, 1), (1, 70), (70, 150)):
        total, normaliser, _, state = prefix_attention(*(y[:, :, start:end] for y in (log_q, log_k, v)), state)
        pieces.append(total / normaliser)
    assert relative_error(torch.cat(pieces, 2), wanted[0] / wanted[1]) <= 1e-13 * scale
    assert isinstance(state, FeatureState)
    assert state.peak.shape == (2, 2, 1, 6)
    assert state.total.shape == (2, 2, 6, 4)
    assert relative_error(state.total, wanted[3].total) <= 1e-13 * scale


def test_memory_is_linear_in_n():
    """No tensor holds more than a chunk's worth of numbers per token."""
    n = 50 * CHUNK
    arguments = [y[:1, :1].requires_grad_(True) for y in inputs(n, torch.float32)]
    with LargestTensor() as seen:
        total, normaliser, _, _ = prefix_attention(*arguments)
        (total / normaliser).sum().backward()
    assert seen.numel <= n * CHUNK
