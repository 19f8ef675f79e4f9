"""Y Lemma 9: hardmax as softmax(λ ·): two heads of size 1, queries λ(β uᵀz − b), keys and values uᵀz.

Ids are whole numbers and thresholds lie half-way, so logits that are not the largest lie λ/2 below it: softmax errs by
(n−1) e^{−λ/2} (max − min). From λ/2 > 746 on, e^{−λ/2} is 0 in float64, and softmax *is* hardmax there.
"""

from __future__ import annotations

import torch

from sumformer.errors import RefusedError
from sumformer.nn.multi_head import MultiHead
from sumformer.nn.normalisers import Hardmax, Normaliser, Softmax
from sumformer.nn.residual_block import ResidualBlock
from sumformer.nn.softmax_attention import SoftmaxAttention
from sumformer.nn.sparse_attention import SparseAttention
from sumformer.nn.zero import Zero
from sumformer.theorems.yun_2020_deep.four_relus import float64
from sumformer.theorems.yun_2020_deep.shift_layers import ShiftLayers

TEMPERATURE = 2048
"""λ: 3/4 of λ/2, which is what rounding of logits of ids below 2⁵⁰ leaves of the gap, is still above 746."""
LARGEST_ID = 2**50


def attention_blocks(shifts: ShiftLayers, temperature: int | None) -> list[ResidualBlock]:
    """One block for each layer, in float64: softmax at this λ, or hardmax for None."""
    if temperature is not None and temperature < TEMPERATURE:
        raise RefusedError("softmax would not be hardmax", [f"expected λ ≥ {TEMPERATURE}, got {temperature}"])
    scale = 1 if temperature is None else temperature
    u, beta, s = (float64(values) for values in (shifts.u, shifts.beta, shifts.s))
    b = float64(shifts.b2) / 2
    blocks = []
    for l in range(len(shifts)):  # noqa: E741
        layer = _attention(shifts, l, Hardmax() if temperature is None else Softmax())
        with torch.no_grad():
            layer.W_Q.weight.copy_(scale * beta[l, :, None] * u)
            layer.W_Q.bias.copy_(-scale * b[l])
            layer.W_K.weight.copy_(u.expand(2, -1))
            layer.W_V.weight.copy_(u.expand(2, -1))
            layer.W_O.weight.zero_()
            layer.W_O.weight[0].copy_(torch.stack([s[l, 0], -s[l, 1]]))
        blocks.append(ResidualBlock(layer, Zero()))
    return blocks


def _attention(shifts: ShiftLayers, l: int, rho: Normaliser) -> MultiHead:  # noqa: E741
    width = len(shifts.u)
    layer: MultiHead
    if shifts.pattern is None:
        layer = SoftmaxAttention(width, 2, 1, rho, query_bias=True, scale=False)
    else:
        step = shifts.step[l]
        layer = SparseAttention(width, shifts.pattern, 2, 1, rho, True, False, composition="sequential", layer=step)
    return layer.to(torch.float64)
