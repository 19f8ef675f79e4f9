"""The kernels of few tokens against the operator's twins, in Triton's interpreter: values and gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sumformer.kernels import products, short_mix
from sumformer.kernels.activations import NAMES
from sumformer.kernels.availability import MEMORY
from sumformer.kernels.layout import Layout
from sumformer.kernels.sum_mix import sum_mix
from sumformer.testing import relative_error

D, LATENT = 16, 40
LIMIT = {torch.float32: 1e-5, torch.float16: 3e-3}  # the interpreter's product takes bfloat16 for integers


def leaves(batch: int, n: int, dtype: torch.dtype, width: int = D, out: int = D) -> list[Tensor]:
    """x and the seven weights."""
    draw = torch.Generator().manual_seed(0)
    shapes = [(batch, n, D), (LATENT, D), (LATENT,), (width, D), (width,), (width, LATENT), (out, width), (out,)]
    return [torch.randn(*shape, generator=draw).mul(0.5).to(dtype).requires_grad_() for shape in shapes]


def found(tensors: list[Tensor], keep: Tensor | None, activation: str, mean: bool) -> list[Tensor]:
    """y, Σ and all gradients."""
    y, total = sum_mix(*tensors, keep, None, activation, mean, True, False)[:2]
    direction = torch.randn(y.shape, generator=torch.Generator().manual_seed(2)).to(y.dtype)
    return [y, total, *torch.autograd.grad(y, tensors, direction)]


def compare(
    batch: int, n: int, dtype: torch.dtype, masked: bool, activation: str, mean: bool, width: int = D, out: int = D
) -> None:
    tensors = leaves(batch, n, dtype, width, out)
    keep = torch.rand(batch, n, generator=torch.Generator().manual_seed(3)) > 0.4 if masked else None
    assert short_mix.shape_for(tensors[0].flatten(0, 1), *(tensors[i] for i in (1, 3, 6)), Layout(batch, n, batch * n))
    got = found(tensors, keep, activation, mean)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "_interpreted", False)
        exact = [t.detach().double().requires_grad_() for t in tensors]
        wanted = found(exact, keep, activation, mean)
    for g, w in zip(got, wanted, strict=True):
        assert g.isfinite().all()
        assert relative_error(g.double(), w.double()) <= LIMIT[dtype]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("batch", "n"), [(1, 33), (2, 20), (3, 16), (1, 80)])
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
@pytest.mark.parametrize(("width", "out"), [(8, 24), (24, 8), (32, 48)])
def test_widths_that_differ(width, out):
    compare(2, 20, torch.float32, True, "gelu", True, width, out)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("n", [20, 40])
def test_what_need_not_be_kept_changes_nothing(n):
    """h then lies where g was, and nowhere else."""
    tensors = leaves(2, n, torch.float32)
    before = [t.detach().clone() for t in tensors]
    y, total, shift, *_ = sum_mix(*tensors, None, None, "gelu", True, True, False)
    other = sum_mix(*tensors, None, None, "gelu", True, False, False)
    assert all(torch.equal(a, b) for a, b in zip((y, total, shift), other[:3], strict=True))
    assert all(torch.equal(t, b) for t, b in zip(tensors, before, strict=True))


@pytest.mark.usefixtures("interpreted")
def test_a_sequence_without_tokens():
    tensors = leaves(2, 20, torch.float32)
    keep = torch.ones(2, 20, dtype=torch.bool)
    keep[1] = False
    y, total, *_ = sum_mix(*tensors, keep, None, "gelu", True, False, False)
    assert y.isfinite().all()
    assert not total[1].any()
    assert total[0].any()


@pytest.mark.usefixtures("interpreted")
def test_not_among_joined_processes(monkeypatch):
    """A launch that needs all of a device could wait for ever for kernels that wait there for one another."""
    tensors = leaves(1, 33, torch.float32)
    wanted = sum_mix(*tensors, None, None, "gelu", True, False, False)[0]
    ran = []
    forward = short_mix.forward
    monkeypatch.setattr(short_mix, "forward", lambda *given: ran.append(given) or forward(*given))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    assert relative_error(sum_mix(*tensors, None, None, "gelu", True, False, False)[0], wanted) <= 1e-5
    assert not ran
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: False)
    assert torch.equal(sum_mix(*tensors, None, None, "gelu", True, False, False)[0], wanted)
    assert ran


def test_shapes():
    """A strip has a thread for a row at most; tiles of y divide, and the largest fits into what a device must have."""
    assert list(short_mix.SHAPES) == sorted(short_mix.SHAPES)
    assert max(short_mix.SHAPES) == short_mix.MOST
    for rows, columns, depth, high, wide, strip, stages, warps in short_mix.SHAPES.values():
        assert strip >= 32 * warps
        assert columns % wide == 0
        assert max(rows + columns, high + wide) * depth * 2 * stages <= MEMORY


@pytest.mark.usefixtures("interpreted")
def test_where_it_applies():
    x, w_phi, w_x = torch.randn(40, D), torch.randn(LATENT, D), torch.randn(D, D)
    assert short_mix.shape_for(x, w_phi, w_x, w_x, Layout(1, 40, 40))
    assert not short_mix.shape_for(x, w_phi, w_x, w_x, Layout(20, 2, 40))
    many = torch.randn(9 * 16, D)
    assert short_mix.shape_for(many[:-16], w_phi, w_x, w_x, Layout(8, 16, 8 * 16))
    assert not short_mix.shape_for(many, w_phi, w_x, w_x, Layout(9, 16, 9 * 16))
    assert not short_mix.shape_for(x, w_phi[:39], w_x, w_x, Layout(1, 40, 40))
    assert not short_mix.shape_for(x, w_phi, w_x, w_x.T, Layout(1, 40, 40))
    assert not short_mix.shape_for(x, w_phi, w_x[:12], w_x[:, :12].contiguous(), Layout(1, 40, 40))
    assert not short_mix.shape_for(x, w_phi, w_x, w_x[:15], Layout(1, 40, 40))
    assert not short_mix.shape_for(x, w_phi, w_x, w_x, Layout(1, 40, 40, torch.tensor([0, 40])))
    assert not short_mix.shape_for(torch.randn(5000, D), w_phi, w_x, w_x, Layout(1, 5000, 5000))
    assert not short_mix.shape_for(*(t.double() for t in (x, w_phi, w_x, w_x)), Layout(1, 40, 40))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("d", [D, 20])
def test_shift(d):
    total, w, b = torch.randn(3, LATENT), torch.randn(d, LATENT), torch.randn(d)
    assert relative_error(short_mix.shift(total, w, b), total @ w.T + b) <= 1e-6


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("length", [1, 7])
def test_reach(length):
    reached, total, w, b = torch.randn(3, D), torch.randn(3, LATENT), torch.randn(D, LATENT), torch.randn(D)
    scale, db_x, dw_s = short_mix.reach(reached, total, w, b, length)
    assert relative_error(scale, reached @ w / length) <= 1e-6
    assert relative_error(db_x, reached.sum(0)) <= 1e-6
    assert relative_error(dw_s, reached.T @ total) <= 1e-6
