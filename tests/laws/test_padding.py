"""Padding is out of sight: outputs and gradients at real tokens are those of the compacted sequence.

The real tokens of a position-bound module (n ≤ 64) keep their ranks, so up to 4096 paddings may stand between them.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from sumformer.errors import InputError
from sumformer.testing import (
    PropertyViolatedError,
    assert_padding_safe,
    empty_row_error,
    padding_error,
    relative_error,
)

from .modules import CASES, D, over_cases, tokens

LIMIT = {torch.float64: 1e-12, torch.float32: 1e-5}
MANY = 4096
over_dtypes = pytest.mark.parametrize("dtype", list(LIMIT), ids=str)


@pytest.mark.parametrize("fill", [math.nan, math.inf, -math.inf], ids=["nan", "inf", "minus_inf"])
@pytest.mark.parametrize("interleave", [False, True], ids=["appended", "interleaved"])
@over_dtypes
@over_cases()
def test_outputs_and_gradients_do_not_see_padding(case, dtype, interleave, fill):
    error = padding_error(case.make(dtype), tokens(5, dtype), (0, 1, 7, 100), fill, interleave)
    assert max(error.output, error.gradient) <= LIMIT[dtype]
    assert error.leak == 0


def check_many(case, dtype, interleave):
    error = padding_error(case.make(dtype), tokens(3, dtype, batch=1), (MANY,), interleave=interleave)
    assert max(error.output, error.gradient) <= LIMIT[dtype]
    assert error.leak == 0


over_ways = pytest.mark.parametrize("interleave", [False, True], ids=["appended", "interleaved"])


@over_ways
@over_dtypes
@over_cases(case for case in CASES if not case.quadratic)
def test_4096_paddings(case, dtype, interleave):
    check_many(case, dtype, interleave)


# A dense attention matrix of 4099² entries takes seconds to sort: once here, in every way among the slow tests.
@over_cases(case for case in CASES if case.quadratic)
def test_4096_paddings_of_a_dense_matrix(case):
    check_many(case, torch.float32, interleave=True)


@pytest.mark.slow
@over_ways
@over_dtypes
@over_cases(case for case in CASES if case.quadratic)
def test_4096_paddings_of_a_dense_matrix_in_every_way(case, dtype, interleave):
    check_many(case, dtype, interleave)


@over_cases()
def test_rows_of_different_lengths_are_compacted_row_by_row(case):
    """Padding on the left, on the right and between, in one batch."""
    module, x = case.make(), tokens(9, batch=3)
    keep = torch.tensor([[0, 0, 1, 1, 1, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0, 0, 0, 0], [1] * 9]).bool()
    out = module(x, **case.mask(keep))
    for row in range(3):
        got = out[row] if case.invariant else out[row, keep[row]]
        assert relative_error(got, module(x[row : row + 1, keep[row]])[0]) <= 1e-12
    if not case.invariant:
        assert (out[~keep] == 0).all()


@over_cases()
def test_parameters_do_not_see_padding(case):
    """Their gradients too are those of the compacted sequence, though the loss looks at every output, padded or not."""
    module, x = case.make(), tokens(5).requires_grad_(True)
    _, *wanted = torch.autograd.grad(module(x).square().sum(), [x, *module.parameters()], allow_unused=True)
    padded = torch.full((2, 12, D), math.nan, dtype=x.dtype)
    keep = torch.zeros(2, 12, dtype=torch.bool)
    keep[:, [0, 3, 4, 8, 11]] = True
    padded[keep] = x.detach().flatten(0, 1)
    padded.requires_grad_(True)
    out = module(padded, **case.mask(keep)).square().sum()
    gradient, *got = torch.autograd.grad(out, [padded, *module.parameters()], allow_unused=True)
    assert (gradient[~keep] == 0).all()
    for g, w in zip(got, wanted, strict=True):
        assert (g is None) == (w is None)
        assert g is None or relative_error(g, w) <= 1e-12


@over_dtypes
@over_cases()
def test_a_row_of_padding_alone_gives_zeros(case, dtype):
    module, x = case.make(dtype), tokens(5, dtype)
    for fill in (math.nan, math.inf, 0.0):
        assert empty_row_error(module, x, fill) <= LIMIT[dtype]
    keep = torch.zeros(2, 5, dtype=torch.bool)
    nothing = torch.full_like(x, math.nan).requires_grad_(True)
    out = module(nothing, **case.mask(keep))
    assert (out == 0).all()
    (gradient,) = torch.autograd.grad(out.sum(), nothing)
    assert (gradient == 0).all()


@over_cases()
def test_a_mask_that_keeps_all_changes_nothing(case):
    module, x = case.make(), tokens(5)
    assert relative_error(module(x, **case.mask(torch.ones(2, 5, dtype=torch.bool))), module(x)) <= 1e-14


# ---- What the peers do. Each of these is wrong in one way, and each is found.


class NaiveLinearAttention(nn.Module):
    """Masks V, but leaves padded keys in the normaliser Σ_j a(k_j)."""

    def forward(self, x, key_padding_mask=None):
        v = x
        if key_padding_mask is not None:
            x = x.masked_fill(key_padding_mask[..., None], 0.0)
            v = x
        q, k = x.exp(), x.exp()
        return q @ (k.mT @ v) / (q @ k.sum(1).unsqueeze(-1))


class CorrectLinearAttention(nn.Module):
    def forward(self, x, key_padding_mask=None):
        padding = torch.zeros(x.shape[:2], dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        x = x.masked_fill(padding[..., None], 0.0)
        q, k = x.exp(), x.exp().masked_fill(padding[..., None], 0.0)
        normaliser = q @ k.sum(1).unsqueeze(-1)
        return (q @ (k.mT @ x) / normaliser.where(normaliser > 0, 1.0)).masked_fill(padding[..., None], 0.0)


class NaiveLinformer(nn.Module):
    """Takes any keyword and looks at none of them, `mask` included."""

    def __init__(self, k=3, n_max=200):
        super().__init__()
        self.E = nn.Parameter(torch.randn(k, n_max, dtype=torch.float64))

    def forward(self, x, **kwargs):
        mixed = self.E[:, : x.shape[1]] @ x
        return (x @ mixed.mT).softmax(-1) @ mixed


class DeafLinformer(NaiveLinformer):
    """The same with the keyword spelt out."""

    def forward(self, x, key_padding_mask=None):
        return super().forward(x)


class NaiveSoftmaxAttention(nn.Module):
    """Handles padding well, except that softmax over nothing is 0/0."""

    def forward(self, x, key_padding_mask=None):
        if key_padding_mask is None:
            return (x @ x.mT).softmax(-1) @ x
        x = x.masked_fill(key_padding_mask[..., None], 0.0)
        weights = (x @ x.mT).masked_fill(key_padding_mask[:, None, :], -torch.inf).softmax(-1)
        return weights @ x


def test_padded_keys_in_the_normaliser_are_found():
    x = tokens(5)
    error = padding_error(NaiveLinearAttention(), x)
    assert error.output > 0.1
    assert error.gradient > 0.1
    with pytest.raises(PropertyViolatedError, match="appended padding"):
        assert_padding_safe(NaiveLinearAttention(), x)
    assert_padding_safe(CorrectLinearAttention(), x)


def test_a_swallowed_mask_is_found():
    x = tokens(5)
    NaiveLinformer()(x, mask=torch.ones(2, 5))  # no complaint: the defect
    with pytest.raises(InputError, match="takes neither attention_mask nor key_padding_mask"):
        padding_error(NaiveLinformer(), x)
    assert padding_error(DeafLinformer(), x, fill=1.0).output > 0.1
    with pytest.raises(PropertyViolatedError):
        assert_padding_safe(DeafLinformer(), x)


def test_nan_on_rows_of_padding_is_found():
    x = tokens(5)
    assert padding_error(NaiveSoftmaxAttention(), x).worst <= 1e-12
    assert empty_row_error(NaiveSoftmaxAttention(), x) == math.inf
    with pytest.raises(PropertyViolatedError, match="a row of padding alone"):
        assert_padding_safe(NaiveSoftmaxAttention(), x)


@over_cases()
def test_ours_pass_the_same_check(case):
    assert_padding_safe(case.make(), tokens(5))


@pytest.mark.parametrize("keyword", ["mask", "attn_mask", "padding_mask", "input_mask"])
@over_cases()
def test_ours_refuse_unknown_keywords(case, keyword):
    with pytest.raises(TypeError, match=keyword):
        case.make()(tokens(5), **{keyword: torch.ones(2, 5, dtype=torch.bool)})
