"""T_0, …, T_m of numbers t ∈ [−1, 1], T_{k+1} = 2t T_k − T_{k−1}, in one launch instead of 2m.

For networks whose degrees the fused kernels do not reach. There is no gradient: where one is wanted, or a compiler or a
transform looks on, torch's own operations do the same.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sumformer.kernels.availability import runs_on
from sumformer.kernels.calling import on_device, transformed, watched
from sumformer.kernels.launch import launch

LEAST = 256
"""Tokens of a sequence; fewer leave most of a program idle."""
_BLOCK = 256
_interpreted = False  # tests of the kernels on a CPU set this, together with TRITON_INTERPRET=1


def chebyshev_rows(t: Tensor, degree: int) -> Tensor | None:
    """t (batch, n), float32 or float64 → (batch, degree + 1, n); None where the kernel does not run."""
    if watched(t) or transformed() or not (_interpreted or runs_on(t)):  # a compiler must not see the length compared
        return None
    if t.dim() != 2 or t.shape[1] < LEAST or t.dtype not in (torch.float32, torch.float64):
        return None
    if torch.is_grad_enabled() and t.requires_grad:
        return None
    from sumformer.kernels.chebyshev_rows_triton import recurrence

    (batch, n), t = t.shape, t.contiguous()
    out = t.new_empty(batch, degree + 1, n)
    blocks = -(-n // _BLOCK)
    if out.numel():
        with on_device(t):
            launch(recurrence, (batch * blocks, 1), (t, out), (n, blocks, degree), (), (_BLOCK,), num_warps=4)
    return out
