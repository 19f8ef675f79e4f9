"""V(x) = Σ_α T_α(u) Q_α, contracted kernel by kernel: never the whole tensor of products T_α per token."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sumformer.nn.expression_parts import Kernel


def kernel_rows(kernels: Sequence[Kernel], tables: Sequence[Tensor]) -> list[Tensor]:
    """For each kernel its x-features (batch, s, X_g), from the tables T_k(u_c), (batch, s, degree + 1)."""
    rows = []
    for kernel in kernels:
        row = tables[kernel.coordinates[0]][..., : kernel.x_degrees[0] + 1]
        for c, degree in zip(kernel.coordinates[1:], kernel.x_degrees[1:], strict=True):
            row = (row.unsqueeze(-1) * tables[c][..., None, : degree + 1]).flatten(-2)
        rows.append(row)
    return rows


def contract_rows(rows: Sequence[Tensor], q: Tensor) -> Tensor:
    """rows (batch, s, X_g), Q (batch, X_1, …, X_g, series) → (batch, s, series); (batch, 1, series) without rows."""
    if not rows:
        return q
    value = torch.unflatten(rows[0] @ q.flatten(2), -1, q.shape[2:])
    for row in rows[1:]:
        value = (row.reshape(*row.shape, *([1] * (value.dim() - 3))) * value).sum(2)
    return value
