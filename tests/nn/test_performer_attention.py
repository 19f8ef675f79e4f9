from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from largest_tensor import LargestTensor

from sumformer.nn.performer_attention import FavorAttention, PerformerAttention, favor
from sumformer.nn.softmax_attention import SoftmaxAttention
from sumformer.testing import padding_error, relative_error


def a(x, omega):
    return torch.stack([torch.exp(w @ x - x @ x / 2) for w in omega]) / math.sqrt(len(omega))


def by_loops(layer, x, normalise):
    """A 2.6, or FAVOR+ with `normalise`, one head and one pair of tokens at a time."""
    n, d = x.shape[1], layer.d_head
    factor = d**-0.25 if normalise else 1.0
    heads = []
    for head in range(layer.nhead):
        rows = slice(head * d, (head + 1) * d)
        q, k, v = (x @ weight.weight[rows].T for weight in (layer.W_Q, layer.W_K, layer.W_V))
        out = torch.zeros_like(q)
        for b in range(x.shape[0]):
            for i in range(n):
                query = a(factor * q[b, i], layer.omega)
                weights = torch.stack([query @ a(factor * k[b, j], layer.omega) for j in range(n)])
                out[b, i] = (weights / weights.sum() if normalise else weights) @ v[b]
        heads.append(out)
    return torch.cat(heads, -1) @ layer.W_O.weight.T


@pytest.mark.parametrize(("cls", "normalise"), [(PerformerAttention, False), (FavorAttention, True)])
@torch.no_grad()
def test_formula(cls, normalise):
    torch.manual_seed(0)
    layer = cls(4, k=6, nhead=2).double()
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    assert relative_error(layer(x), by_loops(layer, x, normalise)) <= 1e-13


@torch.no_grad()
def test_favor_tends_to_softmax_attention_like_the_root_of_k():
    torch.manual_seed(0)
    softmax = SoftmaxAttention(8, 2).double()
    x = 0.5 * torch.randn(2, 10, 8, dtype=torch.float64)
    errors = []
    for k in (16, 256, 4096):
        squares = []
        for seed in range(20):
            layer = FavorAttention(8, k=k, nhead=2, seed=seed).double()
            layer.load_state_dict(softmax.state_dict() | {"omega": layer.omega})
            squares.append((layer(x) - softmax(x)).square().mean())
        errors.append(torch.stack(squares).mean().sqrt().item())
    for coarse, fine in pairwise(errors):
        assert coarse / fine == pytest.approx(4, rel=0.3)  # k grew sixteenfold


def test_omega_is_saved_and_belongs_to_the_seed(tmp_path):
    layer = PerformerAttention(4, k=6, seed=3)
    assert torch.equal(layer.omega, PerformerAttention(4, k=6, seed=3).omega)
    assert not torch.equal(layer.omega, PerformerAttention(4, k=6, seed=4).omega)
    with torch.no_grad():
        layer.omega.mul_(2)  # what is saved is the buffer, not the seed
    layer.save_pretrained(tmp_path)
    assert torch.equal(PerformerAttention.from_pretrained(tmp_path).omega, layer.omega)


def test_favor_is_stable_where_plain_features_are_not():
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 1, 6, 4, generator=generator) for _ in "qkv")
    q, k, omega = (60 * q).requires_grad_(True), (60 * k).requires_grad_(True), torch.randn(8, 4, generator=generator)
    out = favor(q, k, v, omega)
    exact = favor(q.detach().double(), k.detach().double(), v.double(), omega.double())
    assert relative_error(out.detach(), exact) <= 1e-4
    assert out.abs().max() <= v.abs().max()  # an average of the values
    for gradient in torch.autograd.grad(out.sum(), (q, k)):
        assert gradient.isfinite().all()
    a_q, a_k = (torch.exp(y @ omega.T - y.square().sum(-1, keepdim=True) / 2) for y in (q / 2**0.5, k / 2**0.5))
    naive = a_q @ (a_k.mT @ v) / (a_q @ a_k.sum(-2).unsqueeze(-1))
    assert not naive.isfinite().all()


class NormaliserWithPadding(FavorAttention):
    """The peers' defect: padded values are masked, padded keys stay in the normaliser."""

    def formula(self, x, keep):
        return self.join(favor(self.queries(x), self.keys(x), self.values(x), self.omega), x)


def test_padded_keys_in_the_normaliser_are_found():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    defective, layer = NormaliserWithPadding(4, k=6).double(), FavorAttention(4, k=6).double()
    assert padding_error(defective, x, paddings=(0,)).worst <= 1e-12
    found = padding_error(defective, x, paddings=(7,))
    assert found.output > 0.1
    assert found.gradient > 0.1
    for interleave in (False, True):
        error = padding_error(layer, x, paddings=(7, 4096), interleave=interleave)
        assert error.worst <= 1e-12
        assert error.leak == 0


@pytest.mark.parametrize("cls", [PerformerAttention, FavorAttention])
def test_cost_is_linear_in_n(cls):
    layer, n = cls(4, k=6), 600
    mask = torch.zeros(1, n, dtype=torch.bool)
    with LargestTensor() as seen:
        layer(torch.randn(1, n, 4).requires_grad_(True), key_padding_mask=mask).sum().backward()
    assert seen.numel <= n * 6
