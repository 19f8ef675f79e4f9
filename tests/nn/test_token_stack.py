from __future__ import annotations

import pytest
import torch

from sumformer.errors import InputError, NotSupportedError
from sumformer.nn import DeepTransformer, PieceStack, ReluStack, ThreePieces, TokenHead, VectorEmbedding
from sumformer.nn.token_stack import TokenStack
from sumformer.nn.zero import Zero


@pytest.mark.parametrize("stack", [ReluStack(3, 4, 5), PieceStack(3, 5)], ids=["relu", "pieces"])
def test_a_stack_is_its_blocks_one_after_the_other(stack):
    stack = stack.double()
    x = torch.randn(2, 6, 3, dtype=torch.float64)
    wanted = x
    for i in range(len(stack)):
        wanted = stack.block(i)(wanted)
    assert torch.allclose(stack(x), wanted, atol=1e-14, rtol=0)


def test_three_pieces_are_half_open():
    layer = ThreePieces(1).double()
    with torch.no_grad():
        layer.w_1.fill_(1)
        layer.w_2.fill_(1)
        layer.c.copy_(torch.tensor([0.0, 1.0]))
        layer.a.copy_(torch.tensor([0.0, 2.0, 0.0]))
        layer.b.copy_(torch.tensor([5.0, 0.0, 7.0]))
    x = torch.tensor([[[-0.1], [0.0], [0.5], [1.0]]], dtype=torch.float64)
    assert layer(x).flatten().tolist() == [5.0, 0.0, 1.0, 7.0]


def bumps(places):
    """1 around each place, from the highest down, and then the token is moved to −10."""
    stack = PieceStack(1, len(places)).double()
    at = torch.tensor(places, dtype=torch.float64)
    with torch.no_grad():
        stack.w_1.fill_(1)
        stack.w_2.copy_(-10 - at.unsqueeze(1))
        stack.c.copy_(torch.stack([at - 0.5, at + 0.5], 1))
        stack.a.zero_()
        stack.b.zero_()
        stack.b[:, 1] = 1
    return stack


def test_a_look_up_by_search_equals_the_layers():
    stack = bumps([7.0, 5.0, 2.0])
    x = torch.linspace(-3, 9, 97, dtype=torch.float64).reshape(1, -1, 1)
    plain = stack(x)
    stack.fused = True
    assert stack.is_look_up()
    assert torch.equal(stack(x), plain)
    assert int((plain < -9).sum()) > 20


@pytest.mark.parametrize("places", [[2.0, 5.0], [2.0, 2.5]])
def test_what_is_no_look_up(places):
    assert not bumps(places).is_look_up()
    assert isinstance(bumps(places), TokenStack)


def test_zero_is_zero_whatever_comes():
    x = torch.tensor([[[float("nan")], [float("inf")]]])
    assert Zero()(x).tolist() == [[[0.0], [0.0]]]


def test_a_deep_transformer_is_for_one_n():
    network = DeepTransformer(2, VectorEmbedding(1, 1), [], TokenHead(1, 1)).double()
    x = torch.rand(3, 2, 1)
    assert network(x).dtype == torch.float64
    assert torch.equal(network(x, attention_mask=torch.ones(3, 2, dtype=torch.long)), network(x))
    with pytest.raises(InputError, match="expected n = 2 tokens, got 3"):
        network(torch.rand(1, 3, 1))
    with pytest.raises(NotSupportedError, match="exactly 2 tokens"):
        network(x, attention_mask=torch.tensor([[1, 0]] * 3))
