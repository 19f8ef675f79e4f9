"""The kernels of few tokens against the operator's twins, in Triton's interpreter: values and gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sumformer.kernels import products, short_mix
from sumformer.kernels.activations import NAMES
from sumformer.kernels.layout import Layout
from sumformer.kernels.sum_mix import sum_mix
from sumformer.testing import relative_error

D, LATENT = 16, 40
LIMIT = {torch.float32: 1e-5, torch.float16: 3e-3}  # the interpreter's product takes bfloat16 for integers


def leaves(batch: int, n: int, dtype: torch.dtype) -> list[Tensor]:
    """x and the seven weights."""
    draw = torch.Generator().manual_seed(0)
    shapes = [(batch, n, D), (LATENT, D), (LATENT,), (D, D), (D,), (D, LATENT), (D, D), (D,)]
    return [torch.randn(*shape, generator=draw).mul(0.5).to(dtype).requires_grad_() for shape in shapes]


def found(tensors: list[Tensor], keep: Tensor | None, activation: str, mean: bool) -> list[Tensor]:
    """y, Σ and all gradients."""
    y, total = sum_mix(*tensors, keep, None, activation, mean, True, False)[:2]
    direction = torch.randn(y.shape, generator=torch.Generator().manual_seed(2)).to(y.dtype)
    return [y, total, *torch.autograd.grad(y, tensors, direction)]


def compare(batch: int, n: int, dtype: torch.dtype, masked: bool, activation: str, mean: bool) -> None:
    tensors = leaves(batch, n, dtype)
    keep = torch.rand(batch, n, generator=torch.Generator().manual_seed(3)) > 0.4 if masked else None
    assert short_mix.applies(tensors[0].flatten(0, 1), *(tensors[i] for i in (1, 3, 6)), Layout(batch, n, batch * n))
    got = found(tensors, keep, activation, mean)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "_interpreted", False)
        exact = [t.detach().double().requires_grad_() for t in tensors]
        wanted = found(exact, keep, activation, mean)
    for g, w in zip(got, wanted, strict=True):
        assert g.isfinite().all()
        assert relative_error(g.double(), w.double()) <= LIMIT[dtype]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("batch", "n"), [(1, 33), (2, 20), (3, 16)])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("mean", [False, True])
def test_layouts(batch, n, masked, mean):
    compare(batch, n, torch.float32, masked, "gelu", mean)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("activation", NAMES)
@pytest.mark.parametrize("dtype", LIMIT)
def test_activations_and_dtypes(activation, dtype):
    compare(1, 33, dtype, False, activation, True)


@pytest.mark.usefixtures("interpreted")
def test_where_it_applies():
    x, w_phi, w_x = torch.randn(40, D), torch.randn(LATENT, D), torch.randn(D, D)
    assert short_mix.applies(x, w_phi, w_x, w_x, Layout(1, 40, 40))
    assert not short_mix.applies(x, w_phi, w_x, w_x, Layout(20, 2, 40))
    assert not short_mix.applies(x, w_phi[:39], w_x, w_x, Layout(1, 40, 40))
    assert not short_mix.applies(x, w_phi, w_x, w_x[:15], Layout(1, 40, 40))
    assert not short_mix.applies(x, w_phi, w_x, w_x, Layout(1, 40, 40, torch.tensor([0, 40])))
    assert not short_mix.applies(torch.randn(5000, D), w_phi, w_x, w_x, Layout(1, 5000, 5000))
    assert not short_mix.applies(*(t.double() for t in (x, w_phi, w_x, w_x)), Layout(1, 40, 40))


@pytest.mark.usefixtures("interpreted")
def test_shift():
    total, w, b = torch.randn(3, LATENT), torch.randn(D, LATENT), torch.randn(D)
    assert relative_error(short_mix.shift(total, w, b), total @ w.T + b) <= 1e-6


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("length", [1, 7])
def test_reach(length):
    reached, total, w, b = torch.randn(3, D), torch.randn(3, LATENT), torch.randn(D, LATENT), torch.randn(D)
    scale, db_x, dw_s = short_mix.reach(reached, total, w, b, length)
    assert relative_error(scale, reached @ w / length) <= 1e-6
    assert relative_error(db_x, reached.sum(0)) <= 1e-6
    assert relative_error(dw_s, reached.T @ total) <= 1e-6
