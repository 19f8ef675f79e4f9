from __future__ import annotations

import pytest
import torch
from torch import nn

from sumformer.errors import NotSupportedError
from sumformer.nn.block import Block
from sumformer.nn.feed_forward import FeedForward
from sumformer.nn.linformer_attention import LinformerAttention
from sumformer.nn.softmax_attention import SoftmaxAttention
from sumformer.testing import padding_error


def test_formula_bare_and_with_norms():
    torch.manual_seed(0)
    att, fc, one, two = SoftmaxAttention(4), FeedForward(4, 6), nn.LayerNorm(4), nn.LayerNorm(4)
    x = torch.randn(2, 5, 4)
    assert torch.equal(Block(att, fc)(x), x + fc(x + att(x)))
    assert torch.equal(Block(att, fc, one, two)(x), x + fc(two(x + att(one(x)))))


def test_equivariance_follows_from_the_parts():
    linformer = LinformerAttention(4, n_max=8, k=3)
    block = Block(linformer, FeedForward(4, 6))
    assert Block(SoftmaxAttention(4), FeedForward(4, 6)).equivariant
    assert not block.equivariant
    with torch.no_grad():
        linformer.E.fill_(1.0)
        linformer.F.fill_(1.0)
    assert block.equivariant


def test_the_feed_forward_may_be_any_token_wise_module():
    torch.manual_seed(0)
    block = Block(SoftmaxAttention(4), nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))).double()
    error = padding_error(block, torch.randn(2, 5, 4, dtype=torch.float64))
    assert error.worst <= 1e-12
    assert error.leak == 0


def test_norms_and_dropout_survive_saving(tmp_path):
    block = Block(SoftmaxAttention(4), FeedForward(4, 6), nn.LayerNorm(4), nn.LayerNorm(4), dropout=0.1).eval()
    block.save_pretrained(tmp_path)
    x = torch.randn(2, 5, 4)
    assert torch.equal(Block.from_pretrained(tmp_path)(x), block(x))


def test_dropout_only_in_training():
    block, x = Block(SoftmaxAttention(4), FeedForward(4, 6), dropout=0.5), torch.randn(2, 9, 4)
    assert not torch.equal(block(x), block(x))
    block.eval()
    assert torch.equal(block(x), block(x))


def test_a_block_streams_as_its_attention_does():
    x = torch.randn(1, 3, 4)
    _, state = Block(SoftmaxAttention(4), nn.Linear(4, 4)).stream(x)
    assert state.held.keys.shape == (1, 1, 3, 4)
    with pytest.raises(
        NotSupportedError, match=r"LinformerAttention.stream: no causal order, E and F .* have a stream"
    ):
        Block(LinformerAttention(4, n_max=5, k=2), FeedForward(4, 6)).stream(x)
    with pytest.raises(NotSupportedError, match=r"Block.stream: its part Identity has no `stream\(x, state\)`"):
        Block(nn.Identity(), FeedForward(4, 6)).stream(x)
