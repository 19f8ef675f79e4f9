from __future__ import annotations

import math

import pytest
import torch

from sumformer.errors import DtypeError, ShapeError
from sumformer.nn.inputs import (
    check_tokens,
    check_width,
    keep_from_attention_mask,
    keep_from_key_padding_mask,
    rank_among_kept,
    zero_padding,
)

X = torch.ones(2, 3, 4)


def test_check_tokens_passes_its_argument_on():
    assert check_tokens("here", X) is X
    assert check_tokens("here", X, 4) is X


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (X[0], ShapeError, r"here: expected a tensor of shape \(batch, n, 4\), got shape \(3, 4\)"),
        (X[..., :2], ShapeError, r"here: expected a tensor of shape \(batch, n, 4\), got shape \(2, 3, 2\)"),
        (X[:, :0], ShapeError, r"with at least one token, got shape \(2, 0, 4\)"),
        (X.long(), DtypeError, "here: expected a floating-point tensor, got torch.int64"),
        (X.tolist(), DtypeError, "here: expected a torch.Tensor of shape .*, got list"),
    ],
)
def test_check_tokens_refuses(x, error, message):
    with pytest.raises(error, match=message):
        check_tokens("here", x, 4)


def test_errors_carry_what_was_wanted_and_what_came():
    with pytest.raises(ShapeError) as caught:
        check_tokens("here", X, 5)
    assert (caught.value.where, tuple(caught.value.got)) == ("here", (2, 3, 4))
    assert "5" in caught.value.expected


def test_check_width():
    assert check_width("here", X, 4) is X
    assert check_width("here", X[0, 0], 4).shape == (4,)
    for x in (X, torch.zeros(())):
        with pytest.raises(ShapeError, match=r"here: expected a tensor of shape \(…, 5\)"):
            check_width("here", x, 5)
    with pytest.raises(DtypeError, match="got float"):
        check_width("here", 1.0, 5)


def test_both_masks_become_one_keep():
    keep = torch.tensor([[True, False, True], [True, True, True]])
    assert keep_from_attention_mask("here", X, None) is None
    assert keep_from_key_padding_mask("here", X, None) is None
    for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        assert torch.equal(keep_from_attention_mask("here", X, keep.to(dtype)), keep)
    assert torch.equal(keep_from_key_padding_mask("here", X, ~keep), keep)


def test_masks_are_not_guessed_at():
    with pytest.raises(
        DtypeError, match=r"attention_mask of a boolean or integer dtype \(1 = keep\), got torch.float32"
    ):
        keep_from_attention_mask("here", X, torch.ones(2, 3))
    with pytest.raises(DtypeError, match=r"boolean key_padding_mask \(True = ignore\), got torch.int64"):
        keep_from_key_padding_mask("here", X, torch.ones(2, 3, dtype=torch.long))
    with pytest.raises(ShapeError, match=r"attention_mask of shape \(batch, n\) = \(2, 3\), got shape \(3, 2\)"):
        keep_from_attention_mask("here", X, torch.ones(3, 2, dtype=torch.bool))


@pytest.mark.parametrize("held", [math.nan, math.inf, -math.inf])
def test_zero_padding_erases_value_and_gradient(held):
    x = torch.tensor([[[1.0], [held], [2.0]]], requires_grad=True)
    out = zero_padding(x, torch.tensor([[True, False, True]]))
    assert out.flatten().tolist() == [1.0, 0.0, 2.0]
    (out * torch.tensor([[[1.0], [held], [1.0]]])).nansum().backward()
    assert x.grad.flatten().tolist() == [1.0, 0.0, 1.0]
    assert zero_padding(x, None) is x


def test_rank_among_kept():
    keep = torch.tensor([[0, 1, 1, 0, 1], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]]).bool()
    assert rank_among_kept(keep).tolist() == [[0, 0, 1, 0, 2], [0, 1, 2, 3, 4], [0, 0, 0, 0, 0]]
