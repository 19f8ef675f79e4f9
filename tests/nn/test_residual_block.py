from __future__ import annotations

import torch
from torch import nn

from sumformer.nn.bilinear_projection import BilinearProjection
from sumformer.nn.feed_forward import FeedForward
from sumformer.nn.residual_block import ResidualBlock
from sumformer.nn.softmax_attention import SoftmaxAttention


def test_formula_bare_and_with_norms():
    torch.manual_seed(0)
    att, ff, one, two = SoftmaxAttention(4, scale=False, query_bias=True), FeedForward(4, 6), *map(nn.LayerNorm, (4, 4))
    x = torch.randn(2, 5, 4)
    z = x + att(x)
    assert torch.equal(ResidualBlock(att, ff)(x), z + ff(z))
    z = x + att(one(x))
    assert torch.equal(ResidualBlock(att, ff, one, two)(x), z + ff(two(z)))


def test_bproj_with_its_residual_is_the_papers():
    torch.manual_seed(0)
    bproj, ff = BilinearProjection(4, n_max=5).double(), FeedForward(4, 6).double()
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    z = x + bproj.W_P @ x @ bproj.W_O.weight.T
    assert torch.allclose(ResidualBlock(bproj, ff)(x), z + ff(z), atol=1e-14)
    assert not ResidualBlock(bproj, ff).equivariant
