"""The same power sums through `feature_sums`: pairs of blocks of columns, added in float64."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from sumformer.kernels.feature_sums import CHEBYSHEV, POWERS, summed
from sumformer.kernels.power_sums_cover import exponents

_SPAN, _WIDTH = 2**14, 32


def by_blocks(x: Tensor, keep: Tensor | None, degree: int, chebyshev: bool, centre: float, inverse: float) -> Tensor:
    """x (batch, n, d), keep (batch, n) → (batch, d') in float64; hidden tokens are taken as t = 0, and weigh 0."""
    batch, _, d = x.shape
    x = ((x.double() - centre) * inverse).to(x.dtype) if chebyshev else x
    weights = None
    if keep is not None:
        weights = keep.to(x.dtype)
        x = torch.where(keep.unsqueeze(-1), x, 0.0)
    degrees, blocks, places = (tensor.to(x.device) for tensor in _plan(d, degree))
    partial = summed(
        x.contiguous(),
        weights,
        x.new_zeros(d),
        x.new_ones(d),
        degrees,
        blocks,
        x.new_zeros(1),
        _split(d),
        [degree] * d,
        CHEBYSHEV if chebyshev else POWERS,
        [],
        [],
        [],
        -1,
        _WIDTH,
        _SPAN,
    )
    out: Tensor = partial.sum(1).reshape(batch, -1).index_select(-1, places)
    return out


def _split(d: int) -> int:
    """The first half of the coordinates goes to one side of the product, the others to the other."""
    return (d + 1) // 2


@cache
def _plan(d: int, degree: int) -> tuple[Tensor, Tensor, Tensor]:
    """Degrees (d, columns) by rising total degree, the pairs of blocks that hold a |β| ≤ m, the place of each β."""
    split = _split(d)
    sides = [exponents(split, degree), exponents(d - split, degree)]
    counts = [(len(side) + _WIDTH - 1) // _WIDTH for side in sides]
    degrees = torch.zeros(d, max(counts) * _WIDTH, dtype=torch.int32)
    degrees[:split, : len(sides[0])] = torch.tensor(sides[0], dtype=torch.int32).T
    if d > split:
        degrees[split:, : len(sides[1])] = torch.tensor(sides[1], dtype=torch.int32).T
    least = [[sum(side[i * _WIDTH]) for i in range(count)] for side, count in zip(sides, counts, strict=True)]
    pairs = [(i, j) for i, a in enumerate(least[0]) for j, b in enumerate(least[1]) if a + b <= degree]
    place_of = {pair: i for i, pair in enumerate(pairs)}
    index = [{beta: i for i, beta in enumerate(side)} for side in sides]
    places = []
    for beta in exponents(d, degree)[1:]:
        i, j = index[0][beta[:split]], index[1][beta[split:]]
        pair = place_of[(i // _WIDTH, j // _WIDTH)]
        places.append((pair * _WIDTH + i % _WIDTH) * _WIDTH + j % _WIDTH)
    return degrees, torch.tensor(pairs, dtype=torch.int32), torch.tensor(places, dtype=torch.long)
