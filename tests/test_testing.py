from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from sumformer.errors import InputError, SumformerError
from sumformer.nn import SoftmaxAttention, mlp_deep_sets, mlp_sumformer
from sumformer.testing import (
    TOLERANCE,
    PaddingError,
    PropertyViolatedError,
    assert_equivariant,
    assert_padding_safe,
    empty_row_error,
    equivariance_error,
    padding_error,
    relative_error,
)


def tokens(n=5, dtype=torch.float64):
    return torch.randn(2, n, 4, generator=torch.Generator().manual_seed(0), dtype=dtype)


class StraightThrough(torch.autograd.Function):
    """The value of `zeroed`, with x's gradient as if nothing had been zeroed."""

    @staticmethod
    def forward(ctx, x, zeroed):
        return zeroed.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Masked(nn.Module):
    """A layer with one mistake at a time; `mistake=""` is a correct one: y_i = x_i² + Σ_k x_k."""

    def __init__(self, mistake=""):
        super().__init__()
        self.mistake = mistake
        self.weight = nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(self, x, key_padding_mask=None):
        padding = torch.zeros(x.shape[:2], dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        zeroed = torch.where(padding[..., None], 0.0, x)
        if self.mistake == "multiplies":
            zeroed = x * ~padding[..., None]
        if self.mistake == "straight-through":
            zeroed = StraightThrough.apply(x, zeroed)
        total = zeroed.sum(1, keepdim=True)
        if self.mistake == "mean over padding":
            total = total / x.shape[1]
        if self.mistake == "first token":
            total = x[:, :1]
        if self.mistake == "position":
            total = total + torch.arange(x.shape[1], dtype=x.dtype)[:, None]
        if self.mistake == "detached with padding" and key_padding_mask is not None:
            total = total.detach()
        if self.mistake == "mean of none":
            total = total / (~padding).sum(1)[:, None, None]
        outside = 1.0 if self.mistake == "constant at padding" else 0.0
        return torch.where(padding[..., None], outside, self.weight * (zeroed**2 + total))


def test_relative_error():
    one, two = torch.tensor([1.0, -4.0]), torch.tensor([1.0, -3.0])
    assert relative_error(two, one) == 0.25
    assert relative_error(one, one) == 0
    assert relative_error(one, torch.zeros(2)) == 4.0
    assert relative_error(torch.tensor([math.nan, 0.0]), two) == math.inf
    assert relative_error(two, torch.tensor([math.nan, 0.0])) == math.inf
    assert relative_error(torch.tensor([math.inf, 0.0]), two) == math.inf
    assert relative_error(torch.zeros(0, 3), torch.zeros(0, 3)) == 0
    assert relative_error(one.bfloat16(), two.double()) == pytest.approx(1 / 3)
    with pytest.raises(InputError, match=r"\(2,\) and \(1,\)"):
        relative_error(one, one[:1])


def test_relative_error_takes_tensors_that_require_gradients():
    x = torch.ones(2, requires_grad=True)
    assert relative_error(2 * x, x) == 1.0


def test_good_modules_pass():
    for module in (Masked(), mlp_sumformer(4, 8, 3).double(), SoftmaxAttention(4).double()):
        assert_equivariant(module, tokens())
        assert_padding_safe(module, tokens())
        assert empty_row_error(module, tokens()) <= 1e-12


def test_invariant_modules_are_compared_as_sets():
    assert equivariance_error(mlp_deep_sets(4, 8, 3).double(), tokens()) <= 1e-12
    assert equivariance_error(nn.Flatten(), tokens()) > 0.1
    assert_padding_safe(mlp_deep_sets(4, 8, 3).double(), tokens())


@pytest.mark.parametrize("mistake", ["first token", "position"])
def test_what_depends_on_order_is_found(mistake):
    assert equivariance_error(Masked(mistake), tokens()) > 0.1
    with pytest.raises(PropertyViolatedError, match="Masked is not equivariant: error") as caught:
        assert_equivariant(Masked(mistake), tokens())
    assert caught.value.error > 0.1
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, SumformerError)


def test_the_measure_is_reproducible_and_leaves_the_random_state():
    torch.manual_seed(3)
    wanted = torch.rand(1)
    torch.manual_seed(3)
    error = equivariance_error(Masked("position"), tokens())
    padding_error(Masked(), tokens(), interleave=True)
    assert torch.equal(torch.rand(1), wanted)
    assert equivariance_error(Masked("position"), tokens()) == error


def test_tolerances():
    assert set(TOLERANCE) == {torch.float64, torch.float32, torch.float16, torch.bfloat16}
    assert_equivariant(Masked("position"), tokens(), tolerance=100.0)


@pytest.mark.parametrize(
    ("mistake", "output", "gradient", "leak"),
    [
        ("multiplies", True, False, True),
        ("mean over padding", True, True, False),
        ("detached with padding", False, True, False),
        ("straight-through", False, False, True),
    ],
)
def test_which_part_padding_breaks_is_said(mistake, output, gradient, leak):
    error = padding_error(Masked(mistake), tokens())
    assert (error.output > 1e-3) == output
    assert (error.leak > 0) == leak
    if not leak:
        assert (error.gradient > 1e-3) == gradient
    assert error.worst == max(error.output, error.gradient, error.leak)
    with pytest.raises(PropertyViolatedError, match="appended padding"):
        assert_padding_safe(Masked(mistake), tokens())


def test_what_only_interleaving_shows():
    assert padding_error(Masked("first token"), tokens()).worst == 0
    assert padding_error(Masked("first token"), tokens(), interleave=True).output == math.inf
    with pytest.raises(PropertyViolatedError, match="interleaved padding"):
        assert_padding_safe(Masked("first token"), tokens())


@pytest.mark.parametrize(("mistake", "error"), [("mean of none", math.inf), ("constant at padding", 1.0)])
def test_what_only_a_row_of_padding_shows(mistake, error):
    assert padding_error(Masked(mistake), tokens(1)).worst <= 1e-12
    assert empty_row_error(Masked(mistake), tokens(1)) == error
    with pytest.raises(PropertyViolatedError, match="a row of padding alone"):
        assert_padding_safe(Masked(mistake), tokens(1))


def test_a_module_without_a_mask_is_refused():
    with pytest.raises(InputError, match=r"Linear\.forward takes neither attention_mask nor key_padding_mask"):
        padding_error(nn.Linear(4, 4).double(), tokens())


def test_both_spellings_of_the_mask():
    class Model(Masked):
        def forward(self, x, attention_mask=None):
            return super().forward(x, None if attention_mask is None else attention_mask == 0)

    assert padding_error(Model(), tokens()) == PaddingError(0.0, 0.0, 0.0)


def test_assert_certified_passes_good_constructions_and_flags_bad_ones():
    import sumformer
    from sumformer.testing import assert_certified

    c = sumformer.construct("mean(exp(-norm2(x-y)))", 1e-3, d=1)
    assert 0 < assert_certified(c, seconds=1.0) <= c.certificate.total
    c.network.coefficients[0].data[0, 0] += 0.01
    with pytest.raises(PropertyViolatedError, match="certified"):
        assert_certified(c, seconds=1.0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_has_its_tolerance(dtype):
    module = SoftmaxAttention(4, nhead=2).to(dtype)
    assert_equivariant(module, tokens(dtype=dtype))
    assert_padding_safe(module, tokens(dtype=dtype))
    with pytest.raises(PropertyViolatedError, match="not equivariant"):
        assert_equivariant(Masked("position"), tokens(dtype=dtype))


@pytest.mark.parametrize("assertion", [assert_equivariant, assert_padding_safe])
def test_a_dtype_without_a_tolerance_is_named(assertion):
    with pytest.raises(InputError, match=rf"{assertion.__name__}: .* not for torch.float8_e4m3fn: give tolerance=…"):
        assertion(Masked(), tokens().to(torch.float8_e4m3fn))
