"""The kernel of the feature sums in Triton's interpreter, against their definition."""

from __future__ import annotations

import pytest
import torch

from sumformer.kernels.feature_sums import CHEBYSHEV, CLAMPED, POWERS, feature_sums, tables


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("basis", [CLAMPED, POWERS, CHEBYSHEV])
def test_feature_sums(basis, width):
    x = torch.rand(2, 300, 2, generator=torch.Generator().manual_seed(0))
    weights = torch.rand(2, 300, generator=torch.Generator().manual_seed(1))
    centre, inverse = torch.full((2,), 0.5), torch.full((2,), 2.5)
    degrees = (torch.arange(2 * width, dtype=torch.int32) % 18).expand(2, -1).contiguous()
    blocks = torch.tensor([[0, 0], [1, 0]], dtype=torch.int32)
    rest = (1, [17, 17], basis, [], [], [], -1, width, 128)
    got = feature_sums(x, weights, centre, inverse, degrees, blocks, x.new_zeros(1), *rest)
    table = tables(x.double(), centre.double(), inverse.double(), [17, 17], basis)
    a, b = (table[c][..., degrees[c].long()] for c in range(2))
    for pair, (i, j) in enumerate(blocks.tolist()):
        left, right = (side[..., block * width : (block + 1) * width] for side, block in ((a, i), (b, j)))
        wanted = torch.einsum("bn,bni,bnj->bij", weights.double(), left, right)
        size = torch.einsum("bn,bni,bnj->bij", weights.double(), left.abs(), right.abs())
        assert ((got[:, :, pair].sum(1) - wanted).abs() <= 1e-5 * (size + 1)).all()
