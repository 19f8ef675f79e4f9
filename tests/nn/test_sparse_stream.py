"""A stream through sparse attention keeps what its pattern may still need, and no more."""

from __future__ import annotations

import pytest
import torch

from sumformer.nn import Encoder, ResidualBlock, SeparableConvolution, SparseAttention, TokenHead, VectorEmbedding
from sumformer.nn import patterns as p
from sumformer.nn.zero import Zero
from sumformer.testing import relative_error

D = 4


def bytes_of(state) -> int:
    """Storage behind every tensor of a state, what a view hides included."""
    if torch.is_tensor(state):
        return state.untyped_storage().nbytes()
    if isinstance(state, tuple | list):
        return sum(bytes_of(part) for part in state)
    return sum(bytes_of(part) for part in vars(state).values()) if hasattr(state, "__dataclass_fields__") else 0


def run(module, x, size):
    state, outs, sizes = None, [], []
    with torch.no_grad():
        for piece in x.split(size, dim=1):
            out, state = module.stream(piece, state)
            outs.append(out)
            sizes.append(bytes_of(state))
    return torch.cat(outs, 1), state, sizes


@pytest.mark.parametrize(
    ("pattern", "most"),
    [(p.Window(8), 8), (p.Star(2), 3), (p.Longformer(4, 3), 7), (p.Fixed(10), 9 + 60), (p.Strided(5), 600)],
    ids=str,
)
def test_how_many_tokens_are_kept(pattern, most):
    torch.manual_seed(0)
    layer, x = SparseAttention(D, pattern, nhead=2).double(), torch.randn(1, 600, D, dtype=torch.float64)
    got, state, _ = run(layer, x, 7)
    assert relative_error(got, layer(x, is_causal=True)) <= 1e-12
    assert state.count == 600
    assert [held.tokens.keys.shape[2] <= most for held in state.held] == [True]
    assert state.held[0].places.shape[0] == state.held[0].tokens.values.shape[2]


def test_heads_with_steps_of_their_own_keep_their_own():
    torch.manual_seed(0)
    layer = SparseAttention(D, p.Fixed(10), nhead=2, composition="multihead")
    _, state, _ = run(layer, torch.randn(1, 95, D), 5)
    assert state.held[0].places.tolist() == [90, 91, 92, 93, 94]
    assert state.held[1].places.tolist() == list(range(9, 95, 10))


def test_memory_of_a_window_does_not_grow():
    """Of a whole network with windows and convolutions, token by token and in pieces."""
    torch.manual_seed(0)
    blocks = [
        ResidualBlock(layer, Zero()) for layer in (SparseAttention(D, p.Longformer(6, 2)), SeparableConvolution(D, 5))
    ]
    net = Encoder(VectorEmbedding(D, D), blocks, TokenHead(D, 1))
    for size in (1, 16):
        _, _, sizes = run(net, torch.randn(2, 320, D), size)
        assert max(sizes[320 // size // 4 :]) == sizes[-1] > 0


def test_a_long_piece_is_read_in_slabs(monkeypatch):
    torch.manual_seed(0)
    layer, x = SparseAttention(D, p.BigBird(3, 1, 2), nhead=2).double(), torch.randn(2, 90, D, dtype=torch.float64)
    wanted = layer(x, is_causal=True)
    monkeypatch.setattr("sumformer.nn.sparse_stream.ELEMENTS", 500)
    assert relative_error(run(layer, x, 45)[0], wanted) <= 1e-12
