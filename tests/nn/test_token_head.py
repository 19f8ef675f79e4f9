from __future__ import annotations

import torch

from sumformer.nn.token_head import TokenHead


def test_one_output_per_real_token_and_no_bias_on_padding():
    head, x = TokenHead(3, 2), torch.randn(1, 3, 3)
    out = head(x, key_padding_mask=torch.tensor([[False, True, False]]))
    assert torch.allclose(out[0, 2], head.map.weight @ x[0, 2] + head.map.bias, atol=1e-6)
    assert (out[0, 1] == 0).all()
