from __future__ import annotations

import pytest
import torch

from sumformer.kernels import prefix_sum as module
from sumformer.kernels.prefix_sum import prefix_sum, prefixes
from sumformer.testing import relative_error


def values(n: int = 150, m: int = 10) -> torch.Tensor:
    return torch.randn(2, n, m, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("reverse", [False, True])
def test_definition_gradient_and_opcheck(reverse):
    x = values(20).double().requires_grad_()
    wanted = [sum(x[:, k] for k in (range(i, 20) if reverse else range(i + 1))) for i in range(20)]
    assert relative_error(prefix_sum(x, reverse), torch.stack(wanted, 1)) <= 1e-14
    torch.autograd.gradcheck(lambda y: prefix_sum(y, reverse), x[:, :4, :2])
    torch.library.opcheck(prefix_sum, (x, reverse))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_it_is_the_same_when_nothing_watches(dtype):
    x = values(20).to(dtype)
    leaf, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    got, wanted = prefixes(leaf, True), prefix_sum(other, True)
    assert torch.equal(got, wanted)
    for y in (got, wanted):
        (y**2).sum().backward()
    assert leaf.grad.dtype == dtype
    assert torch.equal(leaf.grad, other.grad)
    if dtype == torch.float64:
        torch.autograd.gradgradcheck(lambda y: prefixes(y, False) ** 2, x[:, :4, :2].clone().requires_grad_())


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 64, 150])
def test_the_kernels(reverse, n, monkeypatch):
    monkeypatch.setattr(module, "_interpreted", True)
    monkeypatch.setattr(module, "_COLS", 16)
    monkeypatch.setattr(module, "_ROWS", 16)
    x = values(n)
    got = prefix_sum(x, reverse)
    wanted = prefix_sum(x.double(), reverse)
    assert (got - wanted).abs().max() <= 1e-6 * x.abs().sum(1).max()


@pytest.mark.usefixtures("interpreted")
def test_nothing_of_a_later_token_is_seen(monkeypatch):
    monkeypatch.setattr(module, "_interpreted", True)
    monkeypatch.setattr(module, "_ROWS", 16)
    x = values()
    x[:, 100:] = float("nan")
    assert prefix_sum(x, False)[:, :100].isfinite().all()


@pytest.mark.usefixtures("interpreted")
def test_gradients_in_batches(monkeypatch):
    monkeypatch.setattr(module, "_interpreted", True)
    x = values(20, 3).requires_grad_()
    directions = torch.randn(3, 2, 20, 3, generator=torch.Generator().manual_seed(1))
    got = torch.autograd.grad(prefixes(x, False), x, directions, is_grads_batched=True)[0]
    wanted = directions.flip(2).cumsum(2).flip(2)
    assert relative_error(got, wanted) <= 1e-6
