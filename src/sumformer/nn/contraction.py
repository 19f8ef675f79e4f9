"""V(x) = Σ_α T_α(u) Q_α, contracted coordinate by coordinate: never the whole tensor of products T_α per token."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sumformer.nn.expression_parts import Kernel


def kernel_rows(kernels: Sequence[Kernel], tables: Sequence[Tensor]) -> list[Tensor]:
    """For each coordinate of each kernel its x-features (batch, m, s), from tables T_k(u_c) of shape (batch, s, …)."""
    return [
        tables[c][..., : degree + 1].mT
        for kernel in kernels
        for c, degree in zip(kernel.coordinates, kernel.x_degrees, strict=True)
    ]


def contract_rows(rows: Sequence[Tensor], q: Tensor) -> Tensor:
    """rows (batch, m_i, s), Q (batch, X_1, …, X_g, series), Π X = Π m → (batch, s, series); (batch, 1, series) without.

    Tokens stand last on the way, where they lie side by side in memory.
    """
    if not rows:
        return q
    shape = (*(row.shape[1] for row in rows), q.shape[-1])
    q = torch.unflatten(q.flatten(1), 1, shape)
    value = torch.unflatten(q.flatten(2).mT @ rows[0], 1, shape[1:])
    for row in rows[1:]:
        value = (row.reshape(*row.shape[:2], *([1] * (value.dim() - 3)), row.shape[2]) * value).sum(1)
    return value.mT
