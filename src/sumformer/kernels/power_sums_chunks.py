"""The same power sums in plain torch: M[i, j] = Σ_k a_i(x_k) b_j(x_k) by matrix products in float64, chunk by chunk.

In d ≥ 2 coordinates a are the products over the first half of them and b those over the others, and the sums stand in M
where |i| + |j| ≤ m. One coordinate is split by a radix q, with a_i = p_i and b_j = p_{qj}, so that a token costs 2√m
values: t^{qj+i} = t^{qj} t^i, and T_{qj+i} = 2 T_{qj} T_i − T_{qj−i}, once tokens are summed. Values are in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import comb, gcd, isqrt

import torch
from torch import Tensor

from sumformer.kernels.power_sums_cover import exponents

HELD = 2**20
"""Values at a time; a GPU wants more."""
_BAND = 32  # rows of M that are made together
_PIECES = 16  # of a chunk, which processors multiply side by side


def by_chunks(x: Tensor, keep: Tensor | None, degree: int, chebyshev: bool, centre: float, inverse: float) -> Tensor:
    """x (batch, n, d), keep (batch, n) bool → (batch, d') in float64, ordered as `exponents`, contiguous."""
    centre, inverse = (centre, inverse) if chebyshev else (0.0, 1.0)
    batch, n, d = x.shape
    rows, columns = _sides(x, degree, chebyshev)
    tokens = max(_PIECES, (16 if x.is_cuda else 1) * HELD // (len(rows) + len(columns)))  # at a time
    out = x.new_empty(batch, comb(degree + d, d) - 1, dtype=torch.float64)
    step = max(1, min(tokens // max(1, n), HELD // (len(rows) * len(columns))))  # sequences whose M are held
    for first in range(0, batch, step):
        group = slice(first, first + step)
        sums = x.new_zeros(len(out[group]), len(rows), len(columns), dtype=torch.float64)
        seen = None if keep is None else keep[group]
        for t, shown in _chunks(x[group], seen, centre, inverse, tokens):
            _add(sums, *_factors(t, shown, degree, chebyshev, rows, columns), rows, columns, degree)
        if d == 1:
            out[group] = _unfolded(sums, chebyshev)[:, 1 : degree + 1]
        else:
            out[group] = sums.flatten(1).index_select(1, _places(d, (d + 1) // 2, degree, x.device))
    return out


def _sides(x: Tensor, degree: int, chebyshev: bool) -> tuple[list[int], list[int]]:
    """The degrees of a_i and of b_j."""
    d = x.shape[2]
    if d > 1:
        split = (d + 1) // 2
        rows, columns = ([sum(beta) for beta in exponents(side, degree)] for side in (split, d - split))
        return rows, columns
    # What is taken off adds its errors, which are nothing beside those of float32 tokens, but much in float64.
    radix = degree + 1 if chebyshev and x.dtype == torch.float64 else isqrt(degree) + 1
    return list(range(radix)), list(range(0, degree + 1, radix))


def _factors(
    t: Tensor, shown: Tensor | None, degree: int, chebyshev: bool, rows: list[int], columns: list[int]
) -> tuple[Tensor, Tensor]:
    """a_i(t) and b_j(t) of t (…, d, n), which are (…, rows, n) and (…, columns, n)."""
    d = t.shape[-2]
    if d > 1:
        values, split = _values(t, shown, degree, chebyshev), (d + 1) // 2
        return _products(values[:, :split]), _products(values[:, split:])
    radix = len(rows)
    a = _values(t, shown, radix, chebyshev)[:, 0]
    return a[:, :radix], _values(a[:, radix:], None, len(columns) - 1, chebyshev)[:, 0]


def _chunks(
    x: Tensor, keep: Tensor | None, centre: float, inverse: float, tokens: int
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """t of pieces of the sequences (sequences · pieces, d, tokens) in float64, 0 where hidden, and which are shown."""
    span = tokens // _PIECES * _PIECES
    for start in range(0, x.shape[1], span):
        y = x[:, start : start + span]
        pieces = gcd(y.shape[1], _PIECES)
        y = y.reshape(-1, y.shape[1] // pieces, y.shape[2]).mT
        t = y.to(torch.float64, memory_format=torch.contiguous_format)
        t = t if (centre, inverse) == (0.0, 1.0) else (t - centre) * inverse
        if keep is None:
            yield t, None
        else:
            shown = keep[:, start : start + span].reshape(len(t), t.shape[2])
            yield torch.where(shown[:, None], t, 0), shown


def _values(t: Tensor, shown: Tensor | None, degree: int, chebyshev: bool) -> Tensor:
    """t (…, d, n) → p_0, …, p_degree (…, d, degree + 1, n); all are 0 in the first coordinate where not shown.

    t^{k+j} = t^k t^j or T_{k+j} = 2 T_k T_j − T_{k−j}, for j = 1, …, k at once and k = 1, 2, 4, ….
    """
    out = t.new_empty(*t.shape[:-1], degree + 1, t.shape[-1])
    out[..., 0, :] = 1
    if shown is not None:
        out[:, 0, 0] = shown
    if degree:
        out[..., 1, :] = t
    k = 1
    while k < degree:
        count = min(k, degree - k)
        kth, new = out[..., k : k + 1, :], out[..., k + 1 : k + count + 1, :]
        torch.mul(out[..., 1 : count + 1, :], 2 * kth if chebyshev else kth, out=new)
        if chebyshev:
            new -= out[..., k - count : k, :].flip(-2)
        k *= 2
    return out


def _products(values: Tensor) -> Tensor:
    """(…, 1 or 2 coordinates, m + 1, n) → (…, columns, n): p_i p_j for i + j ≤ m, by rising degree."""
    if values.shape[-3] == 1:
        return values.squeeze(-3)
    first, second = values[..., 0, :, :].flip(-2), values[..., 1, :, :]
    m = second.shape[-2] - 1
    out = second.new_empty(*second.shape[:-2], (m + 1) * (m + 2) // 2, second.shape[-1])
    for s in range(m + 1):
        start = s * (s + 1) // 2
        torch.mul(first[..., m - s :, :], second[..., : s + 1, :], out=out[..., start : start + s + 1, :])
    return out


def _add(sums: Tensor, a: Tensor, b: Tensor, rows: list[int], columns: list[int], degree: int) -> None:
    """sums += a bᵀ in bands of rows, each with the columns whose degree is not too high for its first row."""
    for first in range(0, len(rows), _BAND):
        width = sum(column <= degree - rows[first] for column in columns)
        band = slice(first, first + _BAND)
        products = a[:, band] @ b[:, :width].mT
        sums[:, band, :width] += products.view(len(sums), -1, *products.shape[1:]).sum(1)


def _unfolded(sums: Tensor, chebyshev: bool) -> Tensor:
    """M[i, j] of one coordinate → the sums of p_{qj+i}, in order."""
    if not chebyshev:
        return sums.mT.flatten(1)
    out = [sums[:, :, 0]]
    for j in range(1, sums.shape[2]):
        before = out[-1].flip(1)[:, :-1]  # of T_{qj−i} for i = 1, …, q − 1
        out.append(torch.cat([sums[:, :1, j], 2 * sums[:, 1:, j] - before], dim=1))
    return torch.cat(out, dim=1)


@cache
def _places(d: int, split: int, degree: int, device: torch.device) -> Tensor:
    """Where M, flattened, holds each β."""
    first = {beta: i for i, beta in enumerate(exponents(split, degree))}
    second = {beta: i for i, beta in enumerate(exponents(d - split, degree))}
    found = [first[beta[:split]] * len(second) + second[beta[split:]] for beta in exponents(d, degree)[1:]]
    return torch.tensor(found, dtype=torch.long, device=device)
