"""Bad input gives a typed error that names the call's part, what was expected and what came; odd input works."""

from __future__ import annotations

import math

import pytest
import torch

from sumformer.errors import DtypeError, ShapeError
from sumformer.testing import relative_error

from .modules import CASES, D, over_cases, tokens
from .refusal import refused

KEEP = torch.ones(2, 5, dtype=torch.bool)


@pytest.mark.parametrize("shape", [(), (D,), (5, D), (1, 2, 5, D)], ids=str)
@over_cases()
def test_wrong_rank(case, shape):
    refused(ShapeError, lambda: case.make()(torch.zeros(shape, dtype=torch.float64)), "(batch, n,", str(shape))


@pytest.mark.parametrize("width", [0, 1, D - 1, D + 1])
@over_cases(case for case in CASES if not case.any_width)
def test_wrong_width(case, width):
    x = torch.zeros(2, 5, width, dtype=torch.float64)
    refused(ShapeError, lambda: case.make()(x), f"{D})", str((2, 5, width)))
    refused(ShapeError, lambda: case.make()(x, **case.mask(KEEP)), f"{D})", str((2, 5, width)))


@over_cases()
def test_no_tokens(case):
    x = torch.zeros(2, 0, D, dtype=torch.float64)
    refused(ShapeError, lambda: case.make()(x), "at least one token", "(2, 0, 4)")


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.bool, torch.complex128], ids=str)
@over_cases()
def test_not_floating(case, dtype):
    refused(DtypeError, lambda: case.make()(torch.zeros(2, 5, D).to(dtype)), "floating-point", str(dtype))


@pytest.mark.parametrize(
    "thing", [None, 3.0, [[[1.0] * D]], "x", torch.zeros(1, 2, D).numpy()], ids=lambda x: type(x).__name__
)
@over_cases()
def test_not_a_tensor(case, thing):
    refused(DtypeError, lambda: case.make()(thing), "torch.Tensor", type(thing).__name__)


@pytest.mark.parametrize("shape", [(5,), (2, 4), (1, 5), (2, 1), (2, 5, 1), (2, 5, 5)], ids=str)
@over_cases()
def test_mask_of_wrong_shape(case, shape):
    (name,) = case.mask(KEEP)
    mask = torch.zeros(shape, dtype=torch.bool)
    refused(ShapeError, lambda: case.make()(tokens(5), **{name: mask}), name, "(2, 5)", str(shape))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64], ids=str)
@over_cases()
def test_mask_of_wrong_dtype(case, dtype):
    """A float mask is what additive masks look like: it is not guessed at."""
    (name,) = case.mask(KEEP)
    refused(DtypeError, lambda: case.make()(tokens(5), **{name: torch.zeros(2, 5, dtype=dtype)}), name, str(dtype))


@over_cases(case for case in CASES if not case.model)
def test_an_integer_key_padding_mask_is_refused(case):
    """1 would mean `ignore` here and `keep` in a model."""
    mask = torch.ones(2, 5, dtype=torch.int64)
    refused(DtypeError, lambda: case.make()(tokens(5), key_padding_mask=mask), "boolean", "True = ignore", "int64")


@over_cases(case for case in CASES if case.model)
def test_an_attention_mask_may_be_boolean_or_integer(case):
    module, x = case.make(), tokens(5)
    keep = KEEP.clone()
    keep[0, 1] = False
    wanted = module(x, attention_mask=keep)
    for dtype in (torch.uint8, torch.int32, torch.int64):
        assert torch.equal(module(x, attention_mask=keep.to(dtype)), wanted)


@over_cases()
def test_mask_that_is_not_a_tensor(case):
    (name,) = case.mask(KEEP)
    refused(DtypeError, lambda: case.make()(tokens(5), **{name: KEEP.tolist()}), name, "list")


@over_cases()
def test_unknown_and_doubled_arguments(case):
    for call in (
        lambda m: m(tokens(5), unheard_of=1),
        lambda m: m(tokens(5), KEEP, KEEP),
        lambda m: m(),
        lambda m: m(tokens(5), **{"key_padding_mask" if case.model else "attention_mask": KEEP}),
    ):
        with pytest.raises(TypeError):
            call(case.make())


@over_cases()
def test_non_contiguous_input_and_mask(case):
    module = case.make()
    x = tokens(5).mT.contiguous().mT
    keep = torch.ones(5, 2, dtype=torch.bool)
    keep[1, 0] = False
    assert not x.is_contiguous()
    assert not keep.T.is_contiguous()
    assert relative_error(module(x), module(x.contiguous())) <= 1e-14
    got = module(x, **case.mask(keep.T))
    assert relative_error(got, module(x.contiguous(), **case.mask(keep.T.contiguous()))) <= 1e-14
    strided = torch.zeros(2, 10, 2 * D, dtype=torch.float64)[:, ::2, ::2].copy_(x)
    assert relative_error(module(strided), module(x.contiguous())) <= 1e-14
    shared = x[:1].expand(2, -1, -1)
    assert relative_error(module(shared), module(shared.contiguous())) <= 1e-14


@over_cases()
def test_one_token_and_one_row(case):
    module, x = case.make(), tokens(1, batch=1)
    out = module(x)
    assert out.shape[:-1] == ((1,) if case.invariant else (1, 1))
    assert out.isfinite().all()
    keep = torch.tensor([[False, True, False]])
    padded = torch.full((1, 3, D), math.nan, dtype=x.dtype)
    padded[:, 1] = x[:, 0]
    got = module(padded, **case.mask(keep))
    assert relative_error(got if case.invariant else got[:, 1:2], out) <= 1e-12


@over_cases()
def test_an_empty_batch_gives_an_empty_batch(case):
    module = case.make()
    width = module(tokens(5)).shape[-1]
    x = tokens(5)[:0].requires_grad_(True)
    for mask in ({}, case.mask(KEEP[:0])):
        out = module(x, **mask)
        assert out.shape == ((0, width) if case.invariant else (0, 5, width))
        out.sum().backward()


@over_cases()
def test_the_input_is_left_as_it_was(case):
    x, keep = tokens(5), KEEP.clone()
    keep[0, 0] = False
    before, mask = x.clone(), case.mask(keep)
    mask_before = {name: tensor.clone() for name, tensor in mask.items()}
    case.make()(x, **mask)
    assert torch.equal(x, before)
    assert all(torch.equal(mask[name], mask_before[name]) for name in mask)


PROMOTES = {"index_positions", "sinusoidal_positions", "learned_positions"}  # an addition, in the wider dtype


@over_cases(case for case in CASES if case.name not in PROMOTES)
def test_tokens_of_another_dtype_than_the_weights(case):
    x = torch.zeros(2, 5, D, dtype=torch.float64)
    refused(DtypeError, lambda: case.make(torch.float32)(x), "torch.float32", "x.float()", "module.double()", "float64")


@over_cases(case for case in CASES if case.name not in PROMOTES)
def test_autocast_takes_either(case):
    module = case.make(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert module(torch.zeros(2, 5, D)).isfinite().all()
        assert module(torch.zeros(2, 5, D, dtype=torch.bfloat16)).isfinite().all()
