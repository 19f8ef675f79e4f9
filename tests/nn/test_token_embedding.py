from __future__ import annotations

import pytest
import torch

from sumformer.errors import DtypeError, InputError, ShapeError
from sumformer.nn.token_embedding import TokenEmbedding


def test_rows_of_the_table_and_zeros_for_padding():
    embedding = TokenEmbedding(5, 3)
    tokens = torch.tensor([[4, 0, -100]])
    out = embedding(tokens, key_padding_mask=torch.tensor([[False, False, True]]))
    assert torch.equal(out[0, :2], embedding.table.weight[[4, 0]])
    assert (out[0, 2] == 0).all()
    out.sum().backward()
    assert embedding.table.weight.grad[:, 0].tolist() == [1.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        (torch.zeros(2, 3), DtypeError, "int64 or int32, got torch.float32"),
        (torch.zeros(3, dtype=torch.long), ShapeError, r"\(batch, n\), got shape \(3,\)"),
        (torch.zeros(2, 0, dtype=torch.long), ShapeError, "at least one token"),
        (torch.tensor([[0, 5]]), InputError, r"0 … 4, got values from 0 to 5"),
        (torch.tensor([[-1, 2]]), InputError, r"0 … 4, got values from -1 to 2"),
    ],
)
def test_bad_tokens_are_named(tokens, error, message):
    with pytest.raises(error, match=message):
        TokenEmbedding(5, 3)(tokens)
