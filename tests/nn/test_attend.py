from __future__ import annotations

import pytest
import torch

from sumformer.nn.attend import attend, naive_attend
from sumformer.nn.normalisers import Softmax, Sparsemax
from sumformer.testing import relative_error


@pytest.mark.parametrize("masked", [False, True])
def test_the_fused_kernel_equals_the_definition_in_value_and_gradient(masked):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, 9, 4, generator=generator, dtype=torch.float64, requires_grad=True) for _ in "qkv")
    keep = torch.rand(2, 9, generator=generator) > 0.4 if masked else None
    upstream = torch.randn(2, 3, 9, 4, generator=generator, dtype=torch.float64)
    fast, naive = (f(q, k, v, Softmax(), 0.7, keep) for f in (attend, naive_attend))
    assert relative_error(fast.detach(), naive.detach()) <= 1e-14
    for got, wanted in zip(*(torch.autograd.grad(y, (q, k, v), upstream) for y in (fast, naive)), strict=True):
        assert relative_error(got, wanted) <= 1e-13


@pytest.mark.parametrize("rho", [Softmax(), Sparsemax()])
def test_a_sequence_of_padding_gives_zeros(rho):
    q, k = torch.randn(2, 1, 4, 3, requires_grad=True), torch.randn(2, 1, 4, 3, requires_grad=True)
    out = attend(q, k, torch.zeros(2, 1, 4, 3), rho, 1.0, torch.zeros(2, 4, dtype=torch.bool))
    assert (out == 0).all()
    for gradient in torch.autograd.grad(out.sum(), (q, k)):
        assert (gradient == 0).all()
