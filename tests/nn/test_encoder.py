from __future__ import annotations

import pytest
import torch
from torch import nn

from sumformer.errors import DtypeError, InputError, NotSupportedError, ShapeError
from sumformer.nn.block import Block
from sumformer.nn.encoder import Encoder
from sumformer.nn.feed_forward import FeedForward
from sumformer.nn.pooled_head import PooledHead
from sumformer.nn.positions import IndexPositions, LearnedPositions, SinusoidalPositions
from sumformer.nn.residual_block import ResidualBlock
from sumformer.nn.separable_convolution import SeparableConvolution
from sumformer.nn.softmax_attention import SoftmaxAttention
from sumformer.nn.token_embedding import TokenEmbedding
from sumformer.nn.token_head import TokenHead
from sumformer.nn.vector_embedding import VectorEmbedding
from sumformer.testing import equivariance_error, padding_error, relative_error


def blocks(d=4):
    return [
        Block(SoftmaxAttention(d), FeedForward(d, 6)),
        ResidualBlock(SoftmaxAttention(d, 2), FeedForward(d, 6), nn.LayerNorm(d), nn.LayerNorm(d)),
    ]


def test_the_encoder_is_the_composition_of_its_parts():
    torch.manual_seed(0)
    encoder = Encoder(VectorEmbedding(3, 4), blocks(), TokenHead(4, 2), SinusoidalPositions(4))
    x = torch.randn(2, 5, 3)
    z = encoder.positions(encoder.embedding(x))
    for block in encoder.blocks:
        z = block(z)
    assert torch.equal(encoder(x), encoder.head(z))
    assert torch.equal(Encoder(encoder.embedding, encoder.blocks, positions=encoder.positions)(x), z)


@pytest.mark.parametrize("positions", [None, IndexPositions(0.1), SinusoidalPositions(4), LearnedPositions(9, 4)])
@pytest.mark.parametrize("head", [None, TokenHead(4, 2), PooledHead(4, 2)])
def test_what_is_said_of_symmetry_and_padding_is_measured(head, positions):
    torch.manual_seed(0)
    encoder = Encoder(VectorEmbedding(3, 4), blocks(), head, positions).double()
    x = torch.randn(2, 6, 3, dtype=torch.float64)
    assert encoder.equivariant == (positions is None)
    assert encoder.invariant == (positions is None and isinstance(head, PooledHead))
    assert encoder.equivariant == (equivariance_error(encoder, x) <= 1e-12)
    error = padding_error(encoder, x, paddings=(3, 50), interleave=True)
    assert error.worst <= 1e-12
    assert error.leak == 0


def test_one_block_bound_to_order_binds_the_encoder():
    bound = ResidualBlock(SeparableConvolution(4), FeedForward(4, 6))
    assert not Encoder(VectorEmbedding(3, 4), [*blocks(), bound], PooledHead(4, 2)).invariant


def test_tokens_padding_and_saving(tmp_path):
    torch.manual_seed(0)
    encoder = Encoder(TokenEmbedding(7, 4), blocks(), PooledHead(4, 2), LearnedPositions(9, 4)).eval()
    tokens, padded = torch.tensor([[1, 6, 3]]), torch.tensor([[-100, 1, 6, -100, 3]])
    wanted = encoder(tokens)
    assert torch.allclose(encoder(padded, attention_mask=(padded >= 0).long()), wanted, atol=1e-6)
    encoder.save_pretrained(tmp_path)
    again = Encoder.from_pretrained(tmp_path)
    assert torch.equal(again(tokens), wanted)
    assert again.config() == encoder.config()


def test_bad_input_names_the_encoder():
    encoder = Encoder(VectorEmbedding(3, 4), blocks())
    x = torch.randn(2, 5, 3)
    with pytest.raises(ShapeError, match="Encoder: expected"):
        encoder(x[0], attention_mask=torch.ones(2, 5))
    with pytest.raises(ShapeError, match="attention_mask of shape"):
        encoder(x, attention_mask=torch.ones(2, 4, dtype=torch.bool))
    with pytest.raises(DtypeError, match="attention_mask of a boolean or integer dtype"):
        encoder(x, attention_mask=torch.ones(2, 5))
    with pytest.raises(TypeError, match="mask"):
        encoder(x, mask=torch.ones(2, 5))
    with pytest.raises(ShapeError, match="Encoder: expected tokens"):
        Encoder(TokenEmbedding(7, 4), blocks())(torch.zeros(3, dtype=torch.long))


@pytest.mark.parametrize("positions", [SinusoidalPositions(4), LearnedPositions(12, 4)], ids=["sinusoidal", "learned"])
def test_a_stream_of_integers_with_positions(positions):
    """One token after the other, as in generation: places are counted on, the state is that of each part."""
    torch.manual_seed(0)
    parts = [*blocks(), ResidualBlock(SeparableConvolution(4), FeedForward(4, 6))]
    encoder = Encoder(TokenEmbedding(7, 4), parts, TokenHead(4, 2), positions).double()
    x, state, outs = torch.randint(0, 7, (2, 12)), None, []
    for piece in x.split([5, *[1] * 7], 1):
        out, state = encoder.stream(piece, state)
        outs.append(out)
    assert relative_error(torch.cat(outs, 1), encoder(x, is_causal=True)) <= 1e-12
    assert len(state) == 6
    assert state[:2] == (None, 12)
    assert state[2].held.keys.shape == (2, 1, 12, 4)
    assert state[5] is None


def test_a_stream_that_cannot_be_says_what_can():
    x = torch.randn(1, 3, 4)
    pooled = Encoder(VectorEmbedding(4, 4), blocks(), PooledHead(4, 2))
    with pytest.raises(NotSupportedError, match=r"PooledHead.stream: it pools .* take a TokenHead"):
        pooled.stream(x)
    with pytest.raises(NotSupportedError, match=r"Encoder.stream: its part Identity has no `stream.*SoftmaxAttention"):
        Encoder(VectorEmbedding(4, 4), [nn.Identity()]).stream(x)
    with pytest.raises(InputError, match="expected the state of its 3 parts"):
        Encoder(VectorEmbedding(4, 4), blocks()).stream(x, (None,))
    with pytest.raises(ShapeError, match=r"LearnedPositions.stream: expected at most n_max = 4 tokens, got 6 by now"):
        LearnedPositions(4, 4).stream(x, 3)
