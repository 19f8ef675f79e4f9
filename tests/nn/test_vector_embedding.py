from __future__ import annotations

import torch

from sumformer.nn.vector_embedding import VectorEmbedding


def test_formula():
    embedding, x = VectorEmbedding(3, 5), torch.randn(2, 4, 3)
    assert torch.allclose(embedding(x), x @ embedding.map.weight.T + embedding.map.bias, atol=1e-6)
