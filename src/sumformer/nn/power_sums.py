"""p_β(X) = Σ_k x_k^β, or Σ_k Π_c T_{β_c}(t_kc), for all 0 < |β| ≤ m: without ever holding d' numbers per token.

|p̂_β − p_β| ≤ 1e-6 · Σ_k |φ_β(x_k)| + the error of the features. They are made in the dtype of x by recurrence: a power
tᵐ is within m u |tᵐ|, and T_m(t) within about m² u of T_m for |t| ≤ 1; products over d coordinates add d u. The sums
themselves run in float64 and are good to 1e-12 of Σ_k |φ_β(x_k)|.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import torch
from torch import Tensor

from sumformer.errors import InputError
from sumformer.kernels import feature_sums as kernel
from sumformer.nn.inputs import check_tokens
from sumformer.nn.polynomial_features import BASES, multi_indices

SPAN = 2**14
HIGHEST = 64
_WIDTH = 32


def power_sums(
    x: Tensor, degree: int, basis: str = "monomial", lower: float = 0.0, upper: float = 1.0, keep: Tensor | None = None
) -> Tensor:
    """x (batch, n, d), d ≤ 4 → (batch, d') in float64, in the order of `multi_indices`; `keep` (batch, n) as a mask.

    With `basis="chebyshev"` lower … upper is mapped to [−1, 1].
    """
    check_tokens("power_sums", x)
    batch, _, d = x.shape
    if d > 4 or not 1 <= degree <= HIGHEST or basis not in BASES or not lower < upper:
        raise InputError(
            f"power_sums: expected d ≤ 4, degree 1 … {HIGHEST}, basis in {BASES} and lower < upper, "
            f"got d = {d}, {degree}, {basis!r}, {lower}, {upper}"
        )
    monomial = basis == "monomial"
    x = x.contiguous() if x.dtype == torch.float64 else x.float().contiguous()
    centre, inverse = (0.0, 1.0) if monomial else ((lower + upper) / 2, 2 / (upper - lower))
    weights = None
    if keep is not None:
        weights = keep.to(x.dtype)
        x = torch.where(keep.unsqueeze(-1), x, centre)
    degrees, blocks, places = (tensor.to(x.device) for tensor in _plan(d, degree))
    partial = torch.ops.sumformer.feature_sums(
        x,
        weights,
        x.new_full((d,), centre),
        x.new_full((d,), inverse),
        degrees,
        blocks,
        x.new_zeros(1),
        _split(d),
        [degree] * d,
        kernel.POWERS if monomial else kernel.CHEBYSHEV,
        [],
        [],
        [],
        -1,
        _WIDTH,
        SPAN,
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
    sides = [_exponents(split, degree), _exponents(d - split, degree)]
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
    for beta in multi_indices(d, degree):
        i, j = index[0][beta[:split]], index[1][beta[split:]]
        pair = place_of[(i // _WIDTH, j // _WIDTH)]
        places.append((pair * _WIDTH + i % _WIDTH) * _WIDTH + j % _WIDTH)
    return degrees, torch.tensor(pairs, dtype=torch.int32), torch.tensor(places, dtype=torch.long)


def _exponents(d: int, degree: int) -> list[tuple[int, ...]]:
    """All exponents of d coordinates with total at most `degree`, by total."""
    everything = product(range(degree + 1), repeat=d)
    return sorted((e for e in everything if sum(e) <= degree), key=lambda e: (sum(e), e))
