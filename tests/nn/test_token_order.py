from __future__ import annotations

import torch

from sumformer.nn.token_order import compact, ranks, spread

KEEP = torch.tensor([[False, True, False, True, True], [True] * 5, [False] * 5])


def test_compact_keeps_the_order_and_spread_undoes_it():
    x = torch.arange(15.0).view(3, 5, 1).expand(3, 5, 2)
    front = compact(x, KEEP)
    assert front[0, :3, 0].tolist() == [1.0, 3.0, 4.0]
    assert torch.equal(front[1], x[1])
    assert torch.equal(spread(front, KEEP), x)


def test_ranks():
    x = torch.zeros(3, 5, 1)
    assert ranks(x, KEEP).tolist() == [[0, 0, 0, 1, 2], [0, 1, 2, 3, 4], [0] * 5]
    assert ranks(x, None).tolist() == [0, 1, 2, 3, 4]
