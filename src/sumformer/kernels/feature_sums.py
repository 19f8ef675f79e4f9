"""`torch.ops.sumformer.feature_sums`: M[i, j] = Σ_k w_k b(y_k) Π_{c<s} p_{α_ic}(t_kc) · Π_{c≥s} p_{α_jc}(t_kc).

p_m is T_m of t = (y − centre)/radius, or tᵐ; b is a list of scalar instructions. Columns
come in blocks of `width`, and only the asked-for pairs of blocks are computed; no buffer holds a feature per token.
Features are made in the dtype of `centre`, their products added in float64, one result per span of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from sumformer.kernels.availability import runs_on
from sumformer.kernels.calling import on_device
from sumformer.kernels.launch import launch
from sumformer.kernels.scalar_instructions import run

CLAMPED, POWERS, CHEBYSHEV = range(3)
"""What p_m is: T_m of t clamped to [−1, 1]; tᵐ; T_m(t)."""
_interpreted = False  # tests of the kernels on a CPU set this, together with TRITON_INTERPRET=1


def summed(
    x: Tensor,
    weights: Tensor | None,
    centre: Tensor,
    inverse: Tensor,
    degrees: Tensor,
    blocks: Tensor,
    constants: Tensor,
    split: int,
    tops: Sequence[int],
    basis: int,
    code: Sequence[int],
    left: Sequence[int],
    right: Sequence[int],
    result: int,
    width: int,
    span: int,
) -> Tensor:
    """x (batch, n, d) → (batch, ⌈n/span⌉, pairs, width, width), in float64.

    `degrees` (d, columns), `blocks` (pairs, 2) are int32; b is the instruction list's value `result`, 1 if that is −1.
    """
    batch, n, d = x.shape
    groups, pairs = (n + span - 1) // span, blocks.shape[0]
    if not (_interpreted or runs_on(x)):
        programs = (code, left, right, result)
        return _twin(x, weights, centre, inverse, degrees, blocks, constants, split, tops, basis, programs, width, span)
    import triton.language as tl

    from sumformer.kernels.expression_triton import feature_sums as kernel

    partial = x.new_empty(batch, groups, pairs, width, width, dtype=torch.float64)
    x, weights = x.contiguous(), None if weights is None else weights.contiguous()
    if not partial.numel():
        return partial
    with on_device(x):
        launch(
            kernel,
            (groups * batch, pairs),
            (x, partial if weights is None else weights, centre, inverse, degrees, blocks, constants, partial),
            (n, groups),
            (degrees.shape[1],),
            (
                *(d, split, tuple(tops), basis, tuple(code), tuple(left), tuple(right), result, weights is not None),
                *(tl.float64 if centre.dtype == torch.float64 else tl.float32, span, 128 if width > 16 else 64, width),
                max(16, 1 << max(tops).bit_length()) if width > 16 else 0,
            ),
            num_warps=4,
        )
    return partial


feature_sums = torch.library.custom_op("sumformer::feature_sums", mutates_args=())(summed)


@feature_sums.register_fake
def _(
    x: Tensor,
    weights: Tensor | None,
    centre: Tensor,
    inverse: Tensor,
    degrees: Tensor,
    blocks: Tensor,
    *rest: Any,
) -> Tensor:
    width, span = rest[-2:]
    groups = (x.shape[1] + span - 1) // span
    return x.new_empty(x.shape[0], groups, blocks.shape[0], width, width, dtype=torch.float64)


def tables(x: Tensor, centre: Tensor, inverse: Tensor, tops: Sequence[int], basis: int) -> list[Tensor]:
    """For each coordinate p_0, …, p_top at every token, (…, top + 1), by recurrence."""
    t = (x.to(centre.dtype) - centre) * inverse
    t = t.clamp(-1, 1) if basis == CLAMPED else t
    out = []
    for c, top in enumerate(tops):
        u = t[..., c]
        rows = [torch.ones_like(u), u]
        for _ in range(1, top):
            rows.append(u * rows[-1] if basis == POWERS else (u + u) * rows[-1] - rows[-2])
        out.append(torch.stack(rows[: top + 1], dim=-1))
    return out


def _twin(
    x: Tensor,
    weights: Tensor | None,
    centre: Tensor,
    inverse: Tensor,
    degrees: Tensor,
    blocks: Tensor,
    constants: Tensor,
    split: int,
    tops: Sequence[int],
    basis: int,
    programs: tuple[Sequence[int], Sequence[int], Sequence[int], int],
    width: int,
    span: int,
) -> Tensor:
    """Span by span, as the kernel; each span is one matrix product in float64."""
    code, left, right, result = programs
    n = x.shape[1]
    out = []
    for start in range(0, n, span):
        y = x[:, start : start + span]
        table = tables(y, centre, inverse, tops, basis)
        weight = torch.ones_like(table[0][..., 0]) if weights is None else weights[:, start : start + span]
        if result >= 0:
            weight = (
                weight
                * run([y[..., c].to(centre.dtype) for c in range(y.shape[2])], constants, code, left, right)[result]
            )
        sides = [weight.unsqueeze(-1), torch.ones_like(weight).unsqueeze(-1)]
        for c in range(y.shape[2]):
            sides[c >= split] = sides[c >= split] * table[c].index_select(-1, degrees[c].long())
        a, b = (_in_blocks(side.double().expand(*y.shape[:2], degrees.shape[1]), width) for side in sides)
        a, b = a[:, :, blocks[:, 0].long()], b[:, :, blocks[:, 1].long()]
        out.append(torch.einsum("bnpi,bnpj->bpij", a, b))
    return torch.stack(out, dim=1)


def _in_blocks(columns: Tensor, width: int) -> Tensor:
    return torch.unflatten(columns, -1, (-1, width))
