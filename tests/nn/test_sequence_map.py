from __future__ import annotations

import pytest
import torch
from torch import nn

from sumformer.errors import NotSupportedError
from sumformer.nn import Block, Encoder, FeedForward, LearnedPositions, PooledHead, SumMixer, TokenEmbedding
from sumformer.nn.layer import Layer
from sumformer.testing import relative_error

CU = torch.tensor([0, 2, 2, 5], dtype=torch.int32)


class Centred(Layer):
    """x_i minus the mean of the real tokens; says nothing of order."""

    def formula(self, x, keep):
        count = x.shape[1] if keep is None else keep.sum(-1).clamp(min=1)[:, None, None]
        return x - x.sum(1, keepdim=True) / count


def test_a_layer_is_packed_by_its_formula_alone():
    x = torch.randn(1, 5, 3)
    got = Centred()(x, cu_seqlens=CU, max_seqlen=3)
    assert relative_error(got, torch.cat([Centred()(x[:, :2]), Centred()(x[:, 2:])], 1)) <= 1e-6


def test_a_layer_that_gives_no_causal_order_has_none():
    with pytest.raises(NotSupportedError, match="Centred: no causal order, its definition gives none"):
        Centred()(torch.randn(1, 5, 3), is_causal=True)


def test_a_block_hands_the_order_to_its_attention():
    class Witness(nn.Module):
        def forward(self, x, **keywords):
            self.seen = keywords
            return x

    witness = Witness()
    block, x = Block(witness, nn.Identity()), torch.randn(1, 5, 3)
    block(x)
    assert witness.seen == {"key_padding_mask": None}
    block(x, is_causal=True)
    assert witness.seen == {"key_padding_mask": None, "is_causal": True}
    block(x, cu_seqlens=CU, max_seqlen=3)
    assert torch.equal(witness.seen.pop("cu_seqlens"), CU)
    assert witness.seen == {"max_seqlen": 3}


def test_an_encoder_of_integer_tokens_on_a_pack():
    torch.manual_seed(0)
    blocks = [Block(SumMixer(4), FeedForward(4, 6))]
    tokens = torch.tensor([[1, 6, 3, 0, 2]])
    for head in (None, PooledHead(4, 2)):
        encoder = Encoder(TokenEmbedding(7, 4), blocks, head, LearnedPositions(3, 4))
        got = encoder(tokens, cu_seqlens=CU, max_seqlen=3)
        parts = [encoder(tokens[:, :2]), encoder(tokens[:, 2:])]
        if head is not None:
            parts.insert(1, torch.zeros(1, 2))
        assert relative_error(got, torch.cat(parts, 1 if head is None else 0)) <= 1e-5


def test_an_encoder_in_causal_order_forgets_nothing_and_foresees_nothing():
    torch.manual_seed(0)
    encoder = Encoder(TokenEmbedding(7, 4), [Block(SumMixer(4), FeedForward(4, 6))] * 2, None, LearnedPositions(5, 4))
    tokens, other = torch.tensor([[1, 6, 3, 0, 2]]), torch.tensor([[1, 6, 3, 5, 5]])
    got, changed = encoder(tokens, is_causal=True), encoder(other, is_causal=True)
    assert torch.equal(got[:, :3], changed[:, :3])
    assert not torch.equal(got[:, 3:], changed[:, 3:])
    with pytest.raises(NotSupportedError, match="PooledHead: no causal order"):
        Encoder(encoder.embedding, encoder.blocks, PooledHead(4, 2))(tokens, is_causal=True)
